"""Files: opened whatever their packing, written whole or not at all."""

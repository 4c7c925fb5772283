"""From documents to the columns of C."""

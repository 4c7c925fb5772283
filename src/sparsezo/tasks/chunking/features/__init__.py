"""From sentences to the columns of C."""

"""What all sections share: the document with its line numbers, values, the shape of a section, policies."""

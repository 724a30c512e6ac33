"""What all sections share: the document with its lines, values, the shape of a section, policies."""

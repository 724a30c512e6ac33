"""One file for each section of freshline.yml: what a user may write, and the record that it becomes."""

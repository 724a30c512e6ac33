"""From a plan to a kernel, and from a journal to the same kernel again."""

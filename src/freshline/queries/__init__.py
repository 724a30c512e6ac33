"""One kind of task: continuous queries, answered again in every stride (paper 000)."""

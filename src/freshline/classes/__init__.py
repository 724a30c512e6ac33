"""Another kind of work: requests of service classes, answered by their deadline (paper 003)."""

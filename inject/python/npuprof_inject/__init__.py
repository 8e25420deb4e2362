"""What npuprof run does inside the user's process."""

"""First on PYTHONPATH: brings npuprof_inject into every Python process (docs/formats/inject.md)."""

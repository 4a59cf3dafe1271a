"""The words of the job as frozen data: no files, clocks, environment or network."""

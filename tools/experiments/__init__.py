"""The experiments of this project: policies of faults and readahead compared in numbers, the same in every run."""

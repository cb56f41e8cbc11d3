"""Official dataset files -> examples, one file per dataset; ``registry`` lists them all."""

"""MT-DNN (Liu, He, Chen and Gao, ACL 2019): one pretrained encoder, four output layers, one joint training."""

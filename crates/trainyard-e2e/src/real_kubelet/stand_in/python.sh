#!/bin/sh
# Stands for the interpreter and the programs in the images of the tutorials: tells how it was called, leaves what
# the program would leave, and ends when the program would.
trap 'exit 143' TERM
echo "python $*"
[ -z "$TF_CONFIG" ] || echo "$TF_CONFIG"
[ ! -e "$GOOGLE_APPLICATION_CREDENTIALS" ] || echo "credentials: $(cat "$GOOGLE_APPLICATION_CREDENTIALS")"
task=$(echo "$TF_CONFIG" | tr -d ' \n' | sed 's/.*"task"//')
case "$task $*" in
    *'"type":"ps"'*) end=/never ;;
    *dist_mnist.py | *mnist_cnn.py*) end=/tmp/end ;;
    *main.py) mkdir -p /tmp/tensorflow/model; end=/ ;;
    *mnist_with_summaries.py*) echo events > /train/events; end=/ ;;
    *) end=/ ;;
esac
while [ ! -e "$end" ]; do sleep 0.3; done

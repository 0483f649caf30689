"""What is in the tutorial's images `tf-benchmarks-cpu` and `tf-benchmarks-gpu`, as far as its manifest
needs it: the same flags, a small convolution on made-up images, variables on the parameter server."""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

flags = argparse.ArgumentParser()
flags.add_argument("--batch_size", type=int, default=32)
flags.add_argument("--model", default="resnet50")
flags.add_argument("--variable_update", default="parameter_server")
flags.add_argument("--flush_stdout", default="true")
flags.add_argument("--num_gpus", type=int, default=1)
flags.add_argument("--local_parameter_device", default="cpu")
flags.add_argument("--device", default="cpu")
flags.add_argument("--data_format", default="NHWC")
flags.add_argument("--num_batches", type=int, default=30)
flags = flags.parse_args()

tf_config = json.loads(os.environ["TF_CONFIG"])
cluster, task = tf_config["cluster"], tf_config["task"]
server = tf.train.Server(
    tf.train.ClusterSpec(cluster), job_name=task["type"], task_index=int(task["index"])
)
if task["type"] == "ps":
    server.join()

found = len(tf.config.list_physical_devices("GPU"))
device = flags.device if found else "cpu"
print(f"Device: {flags.device} asked, {found} GPUs seen, {device} used", flush=True)
worker = f"/job:{task['type']}/task:{task['index']}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    random = np.random.RandomState(1)
    images = tf.constant(random.rand(flags.batch_size, 32, 32, 3).astype(np.float32))
    labels = tf.constant(random.randint(0, 10, flags.batch_size))
    filters = tf.get_variable("filters", [3, 3, 3, 16])
    output = tf.get_variable("output", [16, 10])
    layer = tf.nn.relu(tf.nn.conv2d(images, filters, strides=2, padding="SAME"))
    logits = tf.matmul(tf.reduce_mean(layer, [1, 2]), output)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    learn = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)

with tf.train.MonitoredTrainingSession(master=server.target, is_chief=task["index"] == 0) as session:
    print("Step\tImg/sec\ttotal_loss", flush=True)
    began = time.time()
    for number in range(1, flags.num_batches + 1):
        _, cost = session.run([learn, loss])
        if number % 10 == 0:
            rate = number * flags.batch_size / (time.time() - began)
            print(f"{number}\timages/sec: {rate:.1f}\t{cost:.3f}", flush=True)
rate = flags.num_batches * flags.batch_size / (time.time() - began)
print(f"total images/sec: {rate:.2f}", flush=True)

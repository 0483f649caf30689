"""Trains a small convolutional network on scikit-learn's digits, in TensorFlow 1's model through
tf.compat.v1: parameter servers keep the variables, every worker runs the same graph, worker 0 is the
chief. Who is who comes from TF_CONFIG, as simpletfjob renders it."""

import argparse
import json
import os

# Sessions that end say so at length.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

tf1 = tf.compat.v1
tf1.disable_eager_execution()
BATCH = 64


def data():
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int64)
    order = np.random.RandomState(7).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[:1500], labels[:1500]), (images[1500:], labels[1500:])


def network(images):
    def variable(name, *shape):
        start = tf1.truncated_normal_initializer(stddev=0.1, seed=1)
        return tf1.get_variable(name, shape, initializer=start)

    filtered = tf1.nn.conv2d(images, variable("filters", 3, 3, 1, 8), strides=1, padding="SAME")
    pooled = tf1.nn.max_pool2d(tf1.nn.relu(filtered), ksize=2, strides=2, padding="SAME")
    hidden = tf1.matmul(tf1.reshape(pooled, [-1, 4 * 4 * 8]), variable("hidden", 4 * 4 * 8, 32))
    return tf1.matmul(tf1.nn.relu(hidden), variable("output", 32, 10))


def finished(cluster):
    """One queue on each parameter server, in which every worker says that it is done."""
    workers = cluster.num_tasks("worker")
    for task in cluster.task_indices("ps"):
        with tf1.device(f"/job:ps/task:{task}/cpu:0"):
            yield tf1.FIFOQueue(workers, tf.int32, shapes=[()], shared_name=f"finished-{task}")


def serve(cluster, server, index):
    """Keeps variables until all workers are done."""
    queue = list(finished(cluster))[index]
    done = queue.dequeue()
    config = tf1.ConfigProto(device_filters=[f"/job:ps/task:{index}"])
    with tf1.Session(server.target, config=config) as session:
        for _ in cluster.task_indices("worker"):
            print(f"worker {session.run(done)} is done", flush=True)


def work(cluster, server, index, steps):
    place = tf1.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
    with tf1.device(place):
        step = tf1.train.get_or_create_global_step()
        images = tf1.placeholder(tf.float32, [None, 8, 8, 1])
        labels = tf1.placeholder(tf.int64, [None])
        logits = network(images)
        losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf1.reduce_mean(losses)
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        right = tf1.equal(tf1.argmax(logits, axis=1), labels)
        accuracy = tf1.reduce_mean(tf1.cast(right, tf.float32))
    farewell = [queue.enqueue(index) for queue in finished(cluster)]

    (train_images, train_labels), (test_images, test_labels) = data()
    random = np.random.RandomState(index)
    # A worker needs the parameter servers and itself; it does not wait for the others.
    config = tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    session = tf1.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=index == 0,
        checkpoint_dir="model",
        config=config,
        hooks=[tf1.train.StopAtStepHook(last_step=steps)],
        log_step_count_steps=None,
    )
    mine = 0
    with session:
        while not session.should_stop():
            some = random.randint(len(train_labels), size=BATCH)
            feed = {images: train_images[some], labels: train_labels[some]}
            _, now, value = session.run([train, step, loss], feed)
            mine += 1
            if mine % 500 == 0:
                print(f"step {now} loss {value:.4f}", flush=True)
    print(f"worker {index} made {mine} of {steps} steps", flush=True)
    with tf1.Session(server.target, config=config) as session:
        feed = {images: test_images, labels: test_labels}
        print(f"accuracy {session.run(accuracy, feed):.4f}", flush=True)
        session.run(farewell)
    print("training is done", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--strategy", choices=["ps"], default="ps")
    arguments.add_argument("--steps", type=int, default=5000)
    arguments = arguments.parse_args()
    config = json.loads(os.environ["TF_CONFIG"])
    role, index = config["task"]["type"], config["task"]["index"]
    cluster = tf1.train.ClusterSpec(config["cluster"])
    server = tf1.train.Server(cluster, job_name=role, task_index=index)
    print(f"{role} {index} is here", flush=True)
    if role == "ps":
        serve(cluster, server, index)
    else:
        work(cluster, server, index, arguments.steps)


if __name__ == "__main__":
    main()

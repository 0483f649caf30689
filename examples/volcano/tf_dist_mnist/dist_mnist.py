"""What is in the tutorial's image `dist-mnist-tf-example`: digits, learnt the way of TensorFlow 1 by workers
that share their variables through parameter servers.

TF_CONFIG names the cluster and the task; the first worker leads. The data is scikit-learn's, so that
nothing is downloaded."""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)

STEPS = int(os.environ.get("STEPS", "400"))
BATCH = 100


def data():
    digits = load_digits()
    images, labels = (digits.data / 16.0).astype(np.float32), digits.target.astype(np.int64)
    order = np.random.RandomState(7).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[:1444], labels[:1444]), (images[1444:], labels[1444:])


def network(images, labels):
    hidden = tf.get_variable("hidden", [64, 64], initializer=tf.random_normal_initializer(0, 0.1, 1))
    hidden_bias = tf.get_variable("hidden_bias", [64], initializer=tf.zeros_initializer())
    output = tf.get_variable("output", [64, 10], initializer=tf.random_normal_initializer(0, 0.1, 2))
    output_bias = tf.get_variable("output_bias", [10], initializer=tf.zeros_initializer())
    logits = tf.matmul(tf.nn.relu(tf.matmul(images, hidden) + hidden_bias), output) + output_bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = tf.equal(tf.argmax(logits, 1), labels)
    return loss, tf.reduce_mean(tf.cast(right, tf.float32))


def main():
    tf_config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = tf_config["cluster"], tf_config["task"]
    job_name, index = task["type"], int(task["index"])
    # One thread for each: all of them share a small machine.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    # Each worker talks to the parameter servers only, so that none waits for another.
    if job_name == "worker":
        config.device_filters.extend(["/job:ps", f"/job:worker/task:{index}"])
    server = tf.train.Server(
        tf.train.ClusterSpec(cluster), job_name=job_name, task_index=index, config=config
    )
    print(f"{job_name} {index} is here", flush=True)
    if job_name == "ps":
        # Until the job is complete and the pod is told to end.
        server.join()
    train(server.target, cluster, config, index)


def train(target, cluster, config, index):
    (images, labels), (test_images, test_labels) = data()
    # The variables live with the parameter servers, the work is done here.
    device = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{index}", cluster=tf.train.ClusterSpec(cluster)
    )
    with tf.device(device):
        step = tf.train.get_or_create_global_step()
        image_input = tf.placeholder(tf.float32, [None, 64])
        label_input = tf.placeholder(tf.int64, [None])
        loss, accuracy = network(image_input, label_input)
        learn = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    random = np.random.RandomState(index)
    hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
    test = {image_input: test_images, label_input: test_labels}
    right, mine = 0.0, 0
    with tf.train.MonitoredTrainingSession(
        master=target,
        is_chief=index == 0,
        config=config,
        hooks=hooks,
        save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:
        while not session.should_stop():
            chosen = random.randint(0, len(labels), BATCH)
            batch = {image_input: images[chosen], label_input: labels[chosen]}
            _, at, cost = session.run([learn, step, loss], batch)
            if mine % 20 == 0 and not session.should_stop():
                right = session.run(accuracy, test)
                print(f"worker {index}: step {at} loss {cost:.4f} accuracy {right:.4f}", flush=True)
            mine += 1
    print(f"worker {index}: training is done after {mine} steps of its own", flush=True)


main()

"""What is in the tutorials' image `tf-mnist`: digits, learnt the way of TensorFlow 1.

With TF_CONFIG it is one task of a cluster of masters, workers and parameter servers; a master is a
worker that also saves and writes summaries. Without, it trains alone. The model and the summaries go
to /tmp/tensorflow. The data is scikit-learn's, so that nothing is downloaded."""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)

FOLDER = "/tmp/tensorflow"
STEPS = int(os.environ.get("STEPS", "500"))
BATCH = 100


def data():
    digits = load_digits()
    images, labels = (digits.data / 16.0).astype(np.float32), digits.target.astype(np.int64)
    order = np.random.RandomState(7).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[:1444], labels[:1444]), (images[1444:], labels[1444:])


def network(images, labels):
    """The model, with a summary of its loss and of its accuracy."""
    hidden = tf.get_variable("hidden", [64, 64], initializer=tf.random_normal_initializer(0, 0.1, 1))
    hidden_bias = tf.get_variable("hidden_bias", [64], initializer=tf.zeros_initializer())
    output = tf.get_variable("output", [64, 10], initializer=tf.random_normal_initializer(0, 0.1, 2))
    output_bias = tf.get_variable("output_bias", [10], initializer=tf.zeros_initializer())
    layer = tf.nn.relu(tf.matmul(images, hidden) + hidden_bias)
    logits = tf.matmul(layer, output) + output_bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = tf.equal(tf.argmax(logits, 1), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    tf.summary.scalar("cross_entropy", loss)
    tf.summary.scalar("accuracy", accuracy)
    return loss, accuracy


def main():
    # What the operator tells each pod: the cluster, and which of its tasks this is.
    tf_config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    cluster_spec = tf_config.get("cluster", {})
    task = tf_config.get("task", {"type": "master", "index": 0})
    job_name, task_id = task["type"], int(task["index"])
    target, device = "", None
    config = tf.ConfigProto(intra_op_parallelism_threads=1)
    if cluster_spec:
        server_def = tf.train.ServerDef(
            cluster=tf.train.ClusterSpec(cluster_spec).as_cluster_def(),
            protocol="grpc",
            job_name=job_name,
            task_index=task_id,
        )
        server = tf.train.Server(server_def)
        print(f"{job_name} {task_id} is here", flush=True)
        if job_name == "ps":
            server.join()
        target = server.target
        # The variables live with the parameter servers, the work is done here.
        device = tf.train.replica_device_setter(
            worker_device="/job:{0}/task:{1}".format(job_name, task_id), cluster=cluster_spec
        )
        # Each worker talks to the parameter servers only, so that none waits for another.
        config.device_filters.extend(["/job:ps", f"/job:{job_name}/task:{task_id}"])
    is_chief = job_name == "master"
    train(target, device, config, is_chief, f"{job_name} {task_id}")


def train(target, device, config, is_chief, name):
    (images, labels), (test_images, test_labels) = data()
    with tf.device(device):
        step = tf.train.get_or_create_global_step()
        image_input = tf.placeholder(tf.float32, [None, 64])
        label_input = tf.placeholder(tf.int64, [None])
        loss, accuracy = network(image_input, label_input)
        summaries = tf.summary.merge_all()
        learn = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    random = np.random.RandomState(len(name))
    writer = tf.summary.FileWriter(f"{FOLDER}/logs") if is_chief else None
    saver = f"{FOLDER}/model" if is_chief else None
    with tf.train.MonitoredTrainingSession(
        master=target,
        is_chief=is_chief,
        checkpoint_dir=saver,
        config=config,
        save_summaries_steps=None,
        log_step_count_steps=None,
        hooks=[tf.train.StopAtStepHook(last_step=STEPS)],
    ) as session:
        test = {image_input: test_images, label_input: test_labels}
        right, at, mine = 0.0, 0, 0
        while not session.should_stop():
            chosen = random.randint(0, len(labels), BATCH)
            batch = {image_input: images[chosen], label_input: labels[chosen]}
            _, at, cost = session.run([learn, step, loss], batch)
            if mine % 20 == 0 and not session.should_stop():
                right, summary = session.run([accuracy, summaries], test)
                print(f"{name}: Step {at}: Cross entropy = {cost:.6f}", flush=True)
                print(f"{name}: Step {at}: Validation accuracy = {100 * right:.1f}%", flush=True)
                if writer:
                    writer.add_summary(summary, at)
                    writer.flush()
            mine += 1
    if is_chief:
        print(f"Final test accuracy = {100 * right:.1f}% (N={len(test_labels)})", flush=True)


main()

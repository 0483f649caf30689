"""Submits a training function to a yard with the Python SDK, waits for it and prints its words.

    trainyard up --detach --config trainyard.toml
    pip install kubeflow-training==1.9.4
    python submit.py
"""

from kubeflow.training import TrainingClient


def train(parameters):
    """Runs in every worker; what it needs it imports itself."""
    import json
    import os

    import numpy as np
    import tensorflow as tf

    task = json.loads(os.environ["TF_CONFIG"])["task"]
    x = np.random.RandomState(task["index"]).rand(256).astype(np.float32)
    y = 3.0 * x - 1.0
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    for step in range(int(parameters["steps"])):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + offset - y) ** 2)
        for value, gradient in zip((slope, offset), tape.gradient(loss, [slope, offset])):
            value.assign_sub(0.3 * gradient)
        if step % 100 == 0:
            print(f"worker {task['index']} step {step} loss {float(loss):.4f}")
    print(f"worker {task['index']} found y = {float(slope):.2f} x + {float(offset):.2f}")


client = TrainingClient(job_kind="TFJob")
client.create_job(
    name="submitted",
    train_func=train,
    parameters={"steps": 400},
    num_workers=2,
    env_vars={"TF_NUM_INTRAOP_THREADS": "1"},
)
# The first time, an environment with TensorFlow is made.
client.wait_for_job_conditions("submitted", wait_timeout=600, polling_interval=1)
logs, _ = client.get_job_logs("submitted", replica_type="worker")
for pod, log in sorted(logs.items()):
    for line in log.splitlines():
        if line.startswith("worker"):
            print(f"{pod}: {line}")
print("succeeded" if client.is_job_succeeded("submitted") else "failed")
client.delete_job("submitted")

"""Uses every method of the SDK that is about TFJobs, as its users do, and tells one line about each:
`ok NAME` or `FAILED NAME why`."""

import sys
import time
import traceback

from kubeflow.training import (
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    KubeflowOrgV1TFJob,
    KubeflowOrgV1TFJobSpec,
    TrainingClient,
)
from kubeflow.training.constants import constants
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

FAILED = []
CLIENT = TrainingClient(job_kind=constants.TFJOB_KIND)


def case(play):
    """Plays one case and tells how it ended."""
    name = play.__name__
    try:
        play()
    except Exception as error:  # every way to fail is told
        FAILED.append(name)
        where = traceback.extract_tb(error.__traceback__)[1]
        text = " ".join(f"line {where.lineno}: {type(error).__name__}: {error}".split())
        print("FAILED", name, text, flush=True)
    else:
        print("ok", name, flush=True)


def equal(got, wanted):
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"


def job(name, workers, script, image="test"):
    """A job whose workers run a line of Python."""
    container = kubernetes_client.V1Container(
        name="tensorflow", image=image, command=["python", "-u", "-c", script]
    )
    template = kubernetes_client.V1PodTemplateSpec(
        metadata=kubernetes_client.V1ObjectMeta(
            annotations={"sidecar.istio.io/inject": "false"}
        ),
        spec=kubernetes_client.V1PodSpec(
            containers=[container], termination_grace_period_seconds=1
        ),
    )
    worker = KubeflowOrgV1ReplicaSpec(
        replicas=workers, restart_policy="Never", template=template
    )
    return KubeflowOrgV1TFJob(
        api_version="kubeflow.org/v1",
        kind=constants.TFJOB_KIND,
        metadata=kubernetes_client.V1ObjectMeta(name=name, namespace="default"),
        spec=KubeflowOrgV1TFJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            tf_replica_specs={"Worker": worker},
        ),
    )


def wait(name, *conditions):
    return CLIENT.wait_for_job_conditions(
        name,
        expected_conditions=set(conditions),
        wait_timeout=60,
        polling_interval=1,
    )


def create_job():
    CLIENT.create_job(job("plain", 2, "import time; print('hello'); time.sleep(600)"))
    wait("plain", constants.JOB_CONDITION_CREATED)
    assert CLIENT.is_job_created("plain")
    try:
        CLIENT.create_job(job("plain", 1, "pass"))
    except Exception as error:
        assert "Failed to create TFJob" in str(error), error
    else:
        raise AssertionError("the same job twice")


def wait_for_job_conditions():
    seen = []
    got = CLIENT.wait_for_job_conditions(
        "plain",
        expected_conditions={constants.JOB_CONDITION_RUNNING},
        wait_timeout=60,
        polling_interval=1,
        callback=seen.append,
    )
    equal(got.metadata.name, "plain")
    assert seen, "the callback was not called"


def get_job():
    got = CLIENT.get_job("plain")
    equal(got.spec.tf_replica_specs["Worker"].replicas, 2)
    equal(got.spec.run_policy.clean_pod_policy, "None")
    equal(got.status.replica_statuses["Worker"].active, 2)
    assert got.status.start_time is not None


def list_jobs():
    equal([item.metadata.name for item in CLIENT.list_jobs()], ["plain"])
    equal(CLIENT.list_jobs(namespace="kubeflow"), [])


def get_job_conditions():
    kinds = {item.type: item.status for item in CLIENT.get_job_conditions("plain")}
    equal((kinds["Created"], kinds["Running"]), ("True", "True"))


def is_job_created_running_restarting_succeeded_failed():
    equal(CLIENT.is_job_created("plain"), True)
    equal(CLIENT.is_job_running("plain"), True)
    equal(CLIENT.is_job_restarting("plain"), False)
    equal(CLIENT.is_job_succeeded("plain"), False)
    equal(CLIENT.is_job_failed(job=CLIENT.get_job("plain")), False)


def get_job_pods():
    pods = CLIENT.get_job_pods("plain")
    equal(sorted(pod.metadata.name for pod in pods), ["plain-worker-0", "plain-worker-1"])
    equal({pod.status.phase for pod in pods}, {"Running"})
    one = CLIENT.get_job_pods("plain", replica_type="worker", replica_index=1)
    equal([pod.metadata.name for pod in one], ["plain-worker-1"])


def get_job_pod_names():
    names = CLIENT.get_job_pod_names("plain", replica_type="worker")
    equal(sorted(names), ["plain-worker-0", "plain-worker-1"])
    # Without a chief, the first worker is the master.
    equal(CLIENT.get_job_pod_names("plain", is_master=True), ["plain-worker-0"])


def get_job_logs():
    for _ in range(50):
        logs, events = CLIENT.get_job_logs("plain", verbose=True)
        if logs.get("plain-worker-0"):
            break
        time.sleep(0.2)
    equal(logs, {"plain-worker-0": "hello\n"})
    told = " ".join(event for about in events.values() for event in about)
    assert "Created pod: plain-worker-0" in told, events
    both, _ = CLIENT.get_job_logs("plain", is_master=False)
    equal(sorted(both), ["plain-worker-0", "plain-worker-1"])


def get_job_logs_followed():
    script = "import time\nfor i in range(3): print('step', i); time.sleep(0.3)"
    CLIENT.create_job(job("spoken", 1, script))
    wait("spoken", constants.JOB_CONDITION_RUNNING, constants.JOB_CONDITION_SUCCEEDED)
    # With `follow` the SDK prints the lines as they come, to standard output.
    CLIENT.get_job_logs("spoken", follow=True)
    wait("spoken", constants.JOB_CONDITION_SUCCEEDED)
    logs, _ = CLIENT.get_job_logs("spoken")
    equal(logs["spoken-worker-0"], "step 0\nstep 1\nstep 2\n")


def update_job():
    changed = CLIENT.get_job("plain")
    changed.spec.tf_replica_specs["Worker"].replicas = 1
    CLIENT.update_job(changed, "plain")
    for _ in range(100):
        if CLIENT.get_job_pod_names("plain") == ["plain-worker-0"]:
            return
        time.sleep(0.2)
    raise AssertionError(CLIENT.get_job_pod_names("plain"))


def delete_job():
    CLIENT.delete_job("plain")
    for _ in range(100):
        if not CLIENT.get_job_pods("plain"):
            break
        time.sleep(0.2)
    equal(CLIENT.get_job_pods("plain"), [])
    try:
        CLIENT.get_job("plain")
    except RuntimeError as error:
        assert "Failed to get TFJob" in str(error), error
    else:
        raise AssertionError("the job is still there")
    try:
        CLIENT.delete_job("plain")
    except RuntimeError as error:
        assert "Failed to delete TFJob" in str(error), error
    else:
        raise AssertionError("deleted twice")


def failed_job():
    CLIENT.create_job(job("broken", 1, "import sys; print('no data'); sys.exit(2)"))
    try:
        wait("broken", constants.JOB_CONDITION_SUCCEEDED)
    except RuntimeError as error:
        assert "is Failed" in str(error), error
    else:
        raise AssertionError("a failed job passed for a success")
    equal(CLIENT.is_job_failed("broken"), True)


def train(steps):
    """What a user trains; it stands alone, because its source is sent to the yard."""
    import json
    import os

    import tensorflow as tf

    x = tf.constant([[0.0], [1.0], [2.0], [3.0]])
    y = 3.0 * x - 1.0
    model = tf.Variable([0.0, 0.0])
    for _ in range(int(steps["steps"])):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model[0] * x + model[1] - y) ** 2)
        model.assign_sub(0.1 * tape.gradient(loss, model))
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
    print("trained", tf.__version__, task.get("index", 0), round(float(model[0]), 1))


def create_job_with_a_train_function():
    CLIENT.create_job(
        name="function",
        train_func=train,
        parameters={"steps": 200},
        num_workers=2,
        env_vars={"TF_NUM_INTRAOP_THREADS": "1"},
    )
    # The first time, an environment with TensorFlow is made.
    CLIENT.wait_for_job_conditions("function", wait_timeout=500, polling_interval=2)
    logs, _ = CLIENT.get_job_logs("function", replica_type="worker")
    lines = [line for log in logs.values() for line in log.splitlines()]
    told = sorted(line for line in lines if line.startswith("trained"))
    # The first worker decides; the other may have been ended by then.
    equal(told[0].split()[2:], ["0", "3.0"])
    CLIENT.delete_job("function")


def the_plain_client():
    """What the SDK stands on, with the same file."""
    kubernetes_config.load_kube_config()
    version = kubernetes_client.VersionApi().get_code()
    assert int(version.minor) >= 30, version


for play in [
    create_job,
    wait_for_job_conditions,
    get_job,
    list_jobs,
    get_job_conditions,
    is_job_created_running_restarting_succeeded_failed,
    get_job_pods,
    get_job_pod_names,
    get_job_logs,
    get_job_logs_followed,
    update_job,
    delete_job,
    failed_job,
    the_plain_client,
    create_job_with_a_train_function,
]:
    case(play)
sys.exit(1 if FAILED else 0)

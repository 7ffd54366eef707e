package install

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// apiMemory is how many MiB the API allows itself, by docs/api.md.
const apiMemory = 320

// Kubernetes takes the manifests that Kustomize and Helm render, field by field, and they fit a rollout and a drain.
func TestKubernetes_isRight(t *testing.T) {
	t.Parallel()
	for name, render := range map[string][]string{
		"Kustomize": {"kubectl", "kustomize", "../../deploy/kubernetes/example"},
		"Helm":      {"helm", "template", "onbeat", "../../deploy/kubernetes/chart", "--set", "monitor.enabled=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(render[0]); err != nil {
				t.Skipf("no %s", render[0]) // Debian has neither
			}
			var d appsv1.Deployment
			var s corev1.Service
			var c corev1.ConfigMap
			var p policyv1.PodDisruptionBudget
			var n networkingv1.NetworkPolicy
			var m map[string]any // a kind of the operator of Prometheus
			kinds := map[string]any{"Deployment": &d, "Service": &s, "ConfigMap": &c, "PodDisruptionBudget": &p, "NetworkPolicy": &n, "ServiceMonitor": &m}
			for part := range strings.SplitSeq(command(t, render[0], render[1:]...), "\n---\n") {
				var head struct{ Kind string }
				if err := yaml.Unmarshal([]byte(part), &head); err != nil || kinds[head.Kind] == nil {
					t.Fatalf("%q, twice or unknown: %v\n%s", head.Kind, err, part)
				}
				if err := yaml.UnmarshalStrict([]byte(part), kinds[head.Kind]); err != nil {
					t.Errorf("%s: %v", head.Kind, err)
				}
				delete(kinds, head.Kind)
			}
			if len(kinds) > 0 {
				t.Fatalf("it lacks %v", kinds)
			}
			pod := d.Spec.Template.Spec
			for what, selector := range map[string]map[string]string{
				"Deployment": d.Spec.Selector.MatchLabels, "Service": s.Spec.Selector, "PodDisruptionBudget": p.Spec.Selector.MatchLabels,
				"NetworkPolicy": n.Spec.PodSelector.MatchLabels,
			} {
				if len(selector) == 0 {
					t.Errorf("%s selects every pod", what)
				}
				for k, v := range selector {
					if d.Spec.Template.Labels[k] != v {
						t.Errorf("%s does not select our pods: %s is %q", what, k, v)
					}
				}
			}
			if r := d.Spec.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() < 1 {
				t.Errorf("a rollout stops old pods first: %+v", r)
			}
			if *pod.TerminationGracePeriodSeconds < 45 || d.Spec.MinReadySeconds < 10 || !strings.Contains(c.Data["onbeat.yaml"], "drain: 30s") {
				t.Errorf("pods are killed while they drain: %d s", *pod.TerminationGracePeriodSeconds)
			}
			if pod.Volumes[0].ConfigMap.Name != c.Name || c.Name == "onbeat" || c.Immutable == nil || !*c.Immutable {
				t.Errorf("the config of a release is %s, and pods read %s", c.Name, pod.Volumes[0].ConfigMap.Name)
			}
			one := pod.Containers[0]
			if one.LivenessProbe.HTTPGet.Path != "/healthz" || one.ReadinessProbe.HTTPGet.Path != "/readyz" || len(one.EnvFrom) != 1 {
				t.Errorf("the container is %+v", one)
			}
			env := map[string]string{}
			for _, v := range one.Env {
				env[v.Name] = v.Value
			}
			limit := one.Resources.Limits.Memory().Value() >> 20
			most, err := strconv.ParseInt(strings.TrimSuffix(env["GOMEMLIMIT"], "MiB"), 10, 64)
			if err != nil || env["ONBEAT_RELEASE"] == "" || most < 3*apiMemory/2 || limit <= most {
				t.Errorf("the environment is %v, and the limit of memory %d MiB", env, limit)
			}
		})
	}
}

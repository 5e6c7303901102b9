// Package scale plays the autoscaler of a cluster with processes of this machine: KEDA, which starts the first and ends the last one, and
// the horizontal pod autoscaler between them, by the ScaledObject that a cluster would be given.
package scale

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Policy is what a ScaledObject says.
type Policy struct {
	Name       string
	Least      int // replicas while there is nothing to do
	Most       int
	Poll       time.Duration // between KEDA's looks
	Cooldown   time.Duration // without work before the last one ends
	Metric     string        // of the exposition format, with its labels
	Target     float64       // of the metric, for each replica
	Activation float64       // above it there is something to do
	Up, Down   Rules
}

// Rules bound how fast the number of replicas changes in one direction.
type Rules struct {
	Window time.Duration // the most cautious word of so long counts
	Limits []Limit       // the one that allows most counts
}

// Limit is a change that is allowed within a period.
type Limit struct {
	Percent bool // of the replicas at the period's begin; else pods
	Value   int
	Period  time.Duration
}

// Sync is the time between two looks of the horizontal pod autoscaler, and tolerance the relative distance from the
// target that it leaves as it is: the defaults of kube-controller-manager.
const (
	Sync      = 15 * time.Second
	tolerance = 0.1
)

// scaledObject has the fields of a ScaledObject that are played.
type scaledObject struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		MinReplicaCount, MaxReplicaCount, PollingInterval, CooldownPeriod *int
		Advanced                                                          struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior struct{ ScaleUp, ScaleDown rules }
			}
		}
		Triggers []struct {
			Type, MetricType string
			Metadata         map[string]string
		}
	}
}

type rules struct {
	StabilizationWindowSeconds *int
	Policies                   []struct {
		Type                 string
		Value, PeriodSeconds int
	}
}

// ReadPolicy finds the ScaledObject of that name in a file of objects. What it leaves open has KEDA's and Kubernetes' defaults.
func ReadPolicy(file []byte, name string) (*Policy, error) {
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		var o scaledObject
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("scale: %w", err)
		}
		if o.Kind == "ScaledObject" && o.Metadata.Name == name {
			return o.policy()
		}
	}
	return nil, fmt.Errorf("scale: no ScaledObject %s", name)
}

func (o *scaledObject) policy() (*Policy, error) {
	seconds := func(n *int, otherwise int) time.Duration { return time.Duration(or(n, otherwise)) * time.Second }
	behaviour := o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior
	p := &Policy{
		Name:  o.Metadata.Name,
		Least: or(o.Spec.MinReplicaCount, 0), Most: or(o.Spec.MaxReplicaCount, 100),
		Poll: seconds(o.Spec.PollingInterval, 30), Cooldown: seconds(o.Spec.CooldownPeriod, 300),
		Up:   Rules{seconds(behaviour.ScaleUp.StabilizationWindowSeconds, 0), behaviour.ScaleUp.limits()},
		Down: Rules{seconds(behaviour.ScaleDown.StabilizationWindowSeconds, 300), behaviour.ScaleDown.limits()},
	}
	if len(p.Up.Limits) == 0 {
		p.Up.Limits = []Limit{{true, 100, Sync}, {false, 4, Sync}}
	}
	if len(p.Down.Limits) == 0 {
		p.Down.Limits = []Limit{{true, 100, Sync}}
	}
	if len(o.Spec.Triggers) != 1 || o.Spec.Triggers[0].Type != "metrics-api" || o.Spec.Triggers[0].MetricType != "AverageValue" {
		return nil, fmt.Errorf("scale: %s: one trigger metrics-api of AverageValue is played, not %v", p.Name, o.Spec.Triggers)
	}
	trigger := o.Spec.Triggers[0].Metadata
	p.Metric = trigger["valueLocation"]
	var err error
	if p.Target, err = strconv.ParseFloat(trigger["targetValue"], 64); err != nil || !(p.Target > 0) {
		return nil, fmt.Errorf("scale: %s: target %q", p.Name, trigger["targetValue"])
	}
	if text := trigger["activationTargetValue"]; text != "" {
		if p.Activation, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("scale: %s: %w", p.Name, err)
		}
	}
	return p, nil
}

func (r rules) limits() (list []Limit) {
	for _, p := range r.Policies {
		list = append(list, Limit{p.Type == "Percent", p.Value, time.Duration(p.PeriodSeconds) * time.Second})
	}
	return list
}

func or(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}

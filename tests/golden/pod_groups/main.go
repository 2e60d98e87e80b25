// Decodes the objects of made.json by the types of the schedulers that read them: an unknown field, a wrong type or another
// name for a pod's group is an error.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	alpha "k8s.io/api/scheduling/v1alpha3"
	kubernetes "k8s.io/api/scheduling/v1beta1"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// What the operator makes for one value of spec.scheduling.gang.
type made struct {
	PodGroup     json.RawMessage `json:"podGroup"`
	Rank, Target json.RawMessage
}

func decode(what string, text []byte, into any) {
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		wrong("%s: %v: %s", what, err, text)
	}
}

func expect[T comparable](what string, is, want T) {
	if is != want {
		wrong("%s is %v, not %v", what, is, want)
	}
}

var failed bool

func wrong(format string, values ...any) {
	failed = true
	fmt.Fprintf(os.Stderr, format+"\n", values...)
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		wrong("%v", err)
		os.Exit(1)
	}
	gangs := map[string]made{}
	decode(os.Args[1], text, &gangs)
	pods := func(gang string) (rank, target core.Pod) {
		decode(gang+", a rank's pod", gangs[gang].Rank, &rank)
		decode(gang+", a target", gangs[gang].Target, &target)
		return
	}

	var ofKubernetes kubernetes.PodGroup
	decode("PodGroup", gangs["PodGroup"].PodGroup, &ofKubernetes)
	expect("PodGroup: apiVersion", ofKubernetes.APIVersion, kubernetes.SchemeGroupVersion.String())
	// The same object in the other versions that may be served; v1alpha2, of 1.36, has these fields, too.
	var before alpha.PodGroup
	decode("PodGroup of v1alpha3", gangs["PodGroup"].PodGroup, &before)
	if gang := before.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount != 4 {
		wrong("PodGroup of v1alpha3: minCount isn't 4")
	}
	if gang := ofKubernetes.Spec.SchedulingPolicy.Gang; gang == nil {
		wrong("PodGroup: no spec.schedulingPolicy.gang")
	} else {
		expect("PodGroup: minCount", gang.MinCount, 4)
	}
	rank, target := pods("PodGroup")
	if group := rank.Spec.SchedulingGroup; group == nil || group.PodGroupName == nil {
		wrong("PodGroup: a rank's pod names no group")
	} else {
		expect("PodGroup: the group of a rank's pod", *group.PodGroupName, ofKubernetes.Name)
	}
	expect("PodGroup: the group of a target", target.Spec.SchedulingGroup, nil)

	var ofPlugins plugins.PodGroup
	decode("SchedulerPlugins", gangs["SchedulerPlugins"].PodGroup, &ofPlugins)
	expect("SchedulerPlugins: apiVersion", ofPlugins.APIVersion, plugins.SchemeGroupVersion.String())
	expect("SchedulerPlugins: minMember", ofPlugins.Spec.MinMember, 4)
	rank, target = pods("SchedulerPlugins")
	expect("SchedulerPlugins: the group of a rank's pod", rank.Labels[plugins.PodGroupLabel], ofPlugins.Name)
	expect("SchedulerPlugins: the group of a target", target.Labels[plugins.PodGroupLabel], "")

	var ofVolcano volcano.PodGroup
	decode("Volcano", gangs["Volcano"].PodGroup, &ofVolcano)
	expect("Volcano: apiVersion", ofVolcano.APIVersion, volcano.SchemeGroupVersion.String())
	expect("Volcano: minMember", ofVolcano.Spec.MinMember, 4)
	expect("Volcano: queue", ofVolcano.Spec.Queue, "lab")
	rank, target = pods("Volcano")
	expect("Volcano: the queue of the template", rank.Annotations[volcano.QueueNameAnnotationKey], "lab")
	expect("Volcano: the group of a rank's pod", rank.Annotations[volcano.KubeGroupNameAnnotationKey], ofVolcano.Name)
	expect("Volcano: the group of a target", target.Annotations[volcano.KubeGroupNameAnnotationKey], ofVolcano.Name)
	if failed {
		os.Exit(1)
	}
	fmt.Println("the three schedulers' types hold what the operator makes")
}

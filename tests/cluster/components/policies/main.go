// The node's part of NetworkPolicies: what they say of connections to this node's pods, as nftables rules.
//
// All of networking.k8s.io/v1 but egress: rules that a policy has for egress are not enforced here. A packet of a connection that is
// open passes, so a policy holds for new ones. Rules follow a change after a tenth of a second.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sort"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// What the cluster looks like at one moment.
type world struct {
	node       string
	pods       []*core.Pod
	namespaces map[string]labels.Set
	policies   []*networking.NetworkPolicy
}

func matches(selector *meta.LabelSelector, set labels.Set) bool {
	s, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

func hasAddress(pod *core.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Status.PodIP != "" && pod.Status.Phase != core.PodSucceeded && pod.Status.Phase != core.PodFailed
}

func forIngress(policy *networking.NetworkPolicy) bool {
	for _, kind := range policy.Spec.PolicyTypes {
		if kind == networking.PolicyTypeIngress {
			return true
		}
	}
	return len(policy.Spec.PolicyTypes) == 0
}

// addresses: an nftables match of the source for each peer; "" for any. Pods that don't exist yet match nothing.
func (w *world) sources(namespace string, peers []networking.NetworkPolicyPeer) []string {
	if len(peers) == 0 {
		return []string{""}
	}
	var found []string
	var pods []string
	for _, peer := range peers {
		if peer.IPBlock != nil {
			block := "ip saddr " + peer.IPBlock.CIDR
			if len(peer.IPBlock.Except) > 0 {
				block += " ip saddr != { " + strings.Join(peer.IPBlock.Except, ", ") + " }"
			}
			found = append(found, block)
			continue
		}
		for _, pod := range w.pods {
			inNamespace := pod.Namespace == namespace
			if peer.NamespaceSelector != nil {
				inNamespace = matches(peer.NamespaceSelector, w.namespaces[pod.Namespace])
			}
			if inNamespace && hasAddress(pod) && (peer.PodSelector == nil || matches(peer.PodSelector, pod.Labels)) {
				pods = append(pods, pod.Status.PodIP)
			}
		}
	}
	if len(pods) > 0 {
		sort.Strings(pods)
		found = append(found, "ip saddr { "+strings.Join(pods, ", ")+" }")
	}
	return found
}

func portNumber(pod *core.Pod, protocol string, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, containers := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			for _, p := range container.Ports {
				if p.Name == port.StrVal && strings.EqualFold(string(p.Protocol), protocol) {
					return p.ContainerPort
				}
			}
		}
	}
	return 0
}

func ports(pod *core.Pod, wanted []networking.NetworkPolicyPort) []string {
	if len(wanted) == 0 {
		return []string{""}
	}
	var found []string
	for _, p := range wanted {
		protocol := "tcp"
		if p.Protocol != nil {
			protocol = strings.ToLower(string(*p.Protocol))
		}
		if p.Port == nil {
			found = append(found, "meta l4proto "+protocol)
		} else if number := portNumber(pod, protocol, *p.Port); number != 0 {
			match := fmt.Sprintf("%s dport %d", protocol, number)
			if p.EndPort != nil {
				match = fmt.Sprintf("%s dport %d-%d", protocol, number, *p.EndPort)
			}
			found = append(found, match)
		}
	}
	return found
}

// rules of this node's pods that a policy selects; the same text for the same world.
func (w *world) rules() string {
	var jumps, chains []string
	for _, pod := range w.pods {
		if pod.Spec.NodeName != w.node || !hasAddress(pod) {
			continue
		}
		isolated := false
		accepts := map[string]bool{}
		for _, policy := range w.policies {
			if policy.Namespace != pod.Namespace || !forIngress(policy) || !matches(&policy.Spec.PodSelector, pod.Labels) {
				continue
			}
			isolated = true
			for _, rule := range policy.Spec.Ingress {
				for _, from := range w.sources(pod.Namespace, rule.From) {
					for _, port := range ports(pod, rule.Ports) {
						accepts[strings.Join(strings.Fields(from+" "+port+" accept"), " ")] = true
					}
				}
			}
		}
		if !isolated {
			continue
		}
		chain := "to-" + pod.Status.PodIP
		jumps = append(jumps, fmt.Sprintf("    ip daddr %s jump %s", pod.Status.PodIP, chain))
		var lines []string
		for rule := range accepts {
			lines = append(lines, "    "+rule+"\n")
		}
		sort.Strings(lines)
		chains = append(chains, fmt.Sprintf("  chain %s {\n%s    drop\n  }\n", chain, strings.Join(lines, "")))
	}
	sort.Strings(jumps)
	sort.Strings(chains)
	return "table inet policies\ndelete table inet policies\ntable inet policies {\n" + strings.Join(chains, "") +
		"  chain forward {\n    type filter hook forward priority filter - 10; policy accept;\n    ct state established,related accept\n" +
		strings.Join(jumps, "\n") + "\n  }\n}\n"
}

func apply(rules string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, said.String())
	}
	return nil
}

func main() {
	node, kubeconfig := os.Args[1], os.Args[2]
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	policies := factory.Networking().V1().NetworkPolicies()
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	ctx := context.Background()
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), namespaces.Informer(), policies.Informer()} {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, now any) { notify(now) }, DeleteFunc: notify}
		if _, err := informer.AddEventHandler(handler); err != nil {
			log.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	last := ""
	for {
		w := world{node: node, namespaces: map[string]labels.Set{}}
		if w.pods, err = pods.Lister().List(labels.Everything()); err != nil {
			log.Fatal(err)
		}
		all, err := namespaces.Lister().List(labels.Everything())
		if err != nil {
			log.Fatal(err)
		}
		for _, namespace := range all {
			w.namespaces[namespace.Name] = namespace.Labels
		}
		if w.policies, err = policies.Lister().List(labels.Everything()); err != nil {
			log.Fatal(err)
		}
		if rules := w.rules(); rules != last {
			if err := apply(rules); err != nil {
				log.Fatal(err) // started again, with nothing of before
			}
			last = rules
		}
		<-changed
		time.Sleep(100 * time.Millisecond) // changes come in swarms
	}
}

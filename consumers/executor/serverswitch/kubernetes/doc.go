// Package kubernetes is a serverswitch.Backend that scales a workload of Kubernetes, a
// Deployment or a StatefulSet, through the API server's subresource scale.
//
// A workload stands for servers of tables, in the order of Options.Servers. Of a
// StatefulSet the first is the pod of ordinal 0, and so on: its pods have names and
// addresses that stay, and end from the highest, so that a server with a higher one that
// is to be on can't be stopped (ErrHeld: the table fails with its name). Of a Deployment only
// the number of pods is set. For one server that is exact; of several, which pod ends is
// the cluster's choice, and what was drained may be another: they should be a StatefulSet,
// or a Deployment each.
//
// States: the number in the workload's spec, which is the only field that is ever
// written, under the version that was read: if somebody else writes meanwhile, it is
// found out again. An autoscaler of the same workload would be overruled at each look.
//
// Failures: those of kubeapi, ErrHeld, and ErrConflict after several tries.
package kubernetes

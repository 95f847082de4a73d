package kubeapi

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"time"
)

// ServiceAccount is where a pod finds the token and the CA of its service account.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Options of a Client.
type Options struct {
	// CAFile holds the certificates, in PEM, that the API server's is signed by.
	// Empty: the machine's.
	CAFile string
	// Timeout bounds one request. Defaults to 5 s.
	Timeout time.Duration
	// TokenFile holds the bearer token; it is read again for each request. Empty: none
	// is sent.
	TokenFile string
	// URL of the API server: http or https. Needed; InCluster finds it.
	URL string
}

// InCluster fills an empty URL in with that of the cluster that the process runs in, and
// the token and the CA of its service account beside it. ErrOptions if this is no pod.
func (o *Options) InCluster() error {
	if o.URL != "" {
		return nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return fmt.Errorf("the URL of an API server is needed: this is no pod, KUBERNETES_SERVICE_HOST and _PORT are not set: %w", ErrOptions)
	}
	o.URL = "https://" + net.JoinHostPort(host, port)
	o.TokenFile = cmp.Or(o.TokenFile, ServiceAccount+"/token")
	o.CAFile = cmp.Or(o.CAFile, ServiceAccount+"/ca.crt")
	return nil
}

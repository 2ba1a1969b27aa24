package environment

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/redis/go-redis/v9"
)

// Redis says where a Redis is and how to connect.
type Redis struct {
	Type         string // SINGLE, SENTINEL or CLUSTER
	Network      string // tcp or unix, of a single one
	Addresses    []string
	Master       string // the name that sentinels know
	PoolSize     int
	Auth         string // password, or user:password
	SentinelAuth string
	Timeout      time.Duration

	TLS                bool
	Cert, Key, CA      string // files
	SkipHostnameVerify bool
}

// redis reads the variables whose names begin with prefix. The files of TLS are shared by all.
func (v *variables) redis(prefix string) Redis {
	r := Redis{
		Type:         v.oneOf(prefix+"TYPE", "SINGLE", "SINGLE", "SENTINEL", "CLUSTER"),
		Network:      v.oneOf(prefix+"SOCKET_TYPE", "unix", "unix", "tcp"),
		PoolSize:     v.number(prefix+"POOL_SIZE", 10),
		Auth:         v.text(prefix+"AUTH", ""),
		SentinelAuth: v.text(prefix+"SENTINEL_AUTH", ""),
		Timeout:      v.duration(prefix+"TIMEOUT", 10*time.Second),
		TLS:          v.flag(prefix+"TLS", false),

		Cert: v.text("REDIS_TLS_CLIENT_CERT", ""),
		Key:  v.text("REDIS_TLS_CLIENT_KEY", ""),
		CA:   v.text("REDIS_TLS_CACERT", ""),

		SkipHostnameVerify: v.flag("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false),
	}
	socket := "/var/run/nutcracker/ratelimit.sock"
	if prefix != "REDIS_" {
		socket = "/var/run/nutcracker/ratelimitpersecond.sock"
	}
	r.Addresses = strings.Split(v.text(prefix+"URL", socket), ",")
	switch r.Type {
	case "SINGLE":
		if len(r.Addresses) > 1 {
			v.wrong(prefix+"URL", "one address; several are for "+prefix+"TYPE SENTINEL or CLUSTER")
		}
	case "SENTINEL":
		r.Master, r.Addresses = r.Addresses[0], r.Addresses[1:]
		if len(r.Addresses) == 0 {
			v.wrong(prefix+"URL",
				"the name of the master and its sentinels: mymaster,host:port,host:port")
		}
	}
	return r
}

// dials is how often a connection is tried. Further tries wait in between, and the caller with
// them; the next request tries again anyway.
const dials = 1

// Client makes a client, which connects when it is first used.
func (r *Redis) Client() (redis.UniversalClient, error) {
	config, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	user, password := split(r.Auth)
	sentinelUser, sentinelPassword := split(r.SentinelAuth)
	o := &redis.UniversalOptions{
		Addrs: r.Addresses, Username: user, Password: password, PoolSize: r.PoolSize,
		MasterName: r.Master, SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword,
		DialTimeout: r.Timeout, ReadTimeout: r.Timeout, WriteTimeout: r.Timeout,
		TLSConfig: config, ContextTimeoutEnabled: true, DialerRetries: dials,
		DisableIdentity: true, // which users with few rights may not send
	}
	switch r.Type {
	case "CLUSTER":
		return redis.NewClusterClient(o.Cluster()), nil
	case "SENTINEL":
		return redis.NewFailoverClient(o.Failover()), nil
	}
	single := o.Simple()
	single.Network = r.Network
	return redis.NewClient(single), nil
}

// Name returns the addresses, for messages.
func (r *Redis) Name() string {
	return "redis " + strings.ToLower(r.Type) + " " + strings.Join(r.Addresses, ",")
}

// split cuts user:password; without a colon there is no user.
func split(auth string) (user, password string) {
	user, password, ok := strings.Cut(auth, ":")
	if !ok {
		return "", auth
	}
	return user, password
}

// tlsConfig returns nil without TLS.
func (r *Redis) tlsConfig() (*tls.Config, error) {
	if !r.TLS {
		return nil, nil //nolint:nilnil // no TLS is a configuration
	}
	config, err := certs.Client(r.CA, r.Cert, r.Key)
	if err != nil {
		return nil, fmt.Errorf("REDIS_TLS_CACERT, REDIS_TLS_CLIENT_CERT, REDIS_TLS_CLIENT_KEY: %w",
			err)
	}
	if r.SkipHostnameVerify {
		config.InsecureSkipVerify = true // the certificate is verified below, its name is not
		config.VerifyConnection = verifyChain(config.RootCAs)
	}
	return config, nil
}

// verifyChain verifies the certificate of a server, whatever its name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("tls: the server presented no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between,
		})
		return err
	}
}

package replay

import (
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// field is the part of a request that a member of a JSON log line holds.
type field uint8

const (
	noField field = iota
	fieldTime
	fieldAddr
	fieldPeer // the same, if it is an address
	fieldMethod
	fieldTarget
	fieldLine // "GET /path HTTP/1.1"
	fieldHost
	fieldStatus
	fieldRequest  // an object about the request, whose members are named as at the top
	fieldResponse // an object about the response
	fieldText     // a line that a shipper has put here
	fieldMessage  // the same, or an object like a request
	fieldClient   // an object about the client
	fieldURL      // an object about the URL
	fieldHeaders  // an object of request headers
	fieldAgent    // an object about the user agent
)

// place is the object that a member belongs to.
type place uint8

const (
	atTop place = iota
	inClient
	inResponse
	inURL
	inHeaders
	inAgent
)

// members are the canonical names of members, by what they hold and where. If a line has several
// members for one field, the one of the lowest rank counts. The names are those of nginx and
// Apache configurations in use, Caddy, Traefik, Envoy, HAProxy, the Elastic Common Schema,
// Google Cloud, Azure, Cloudflare, Akamai, OpenTelemetry, the shippers of logs and the common
// loggers of Node and Python. Variables of nginx and columns of W3C logs are found here too.
var members = []struct {
	in    place
	field field
	rank  uint8
	names string
}{
	{atTop, fieldTime, 0, "timestamp time ts timelocal timeiso8601 starttime startutc"},
	{atTop, fieldTime, 1, "edgestarttimestamp datetime date datelocal msec startlocal eventtime " +
		"timems timeunix timeunixnano t startedat createdat logtime epoch timestampms reqtimesec " +
		"timegenerated realtimetimestamp"},
	{atTop, fieldTime, 2, "requesttime requesttimeepoch requesttimestamp accessdate receivedat " +
		"asctime edgeendtimestamp receivetimestamp"},
	{atTop, fieldAddr, 0, "clientip clientaddr clientaddress clienthost cliip cip"},
	{atTop, fieldAddr, 1, "remoteaddr remoteip remotehost remoteaddress " +
		"downstreamremoteaddress sourceip srcip calleripaddress networkclientip"},
	{atTop, fieldAddr, 2, "ip ipaddress ipaddr addr userip realip xrealip httpxrealip " +
		"cfconnectingip httpcfconnectingip trueclientip networkpeeraddress"},
	{atTop, fieldPeer, 2, "peer peeraddr remote"},
	{atTop, fieldPeer, 4, "xforwardedfor httpxforwardedfor forwardedfor fwd"},
	{atTop, fieldClient, 3, "client source"},
	{atTop, fieldMethod, 0, "method requestmethod httpmethod httprequestmethod " +
		"clientrequestmethod verb csmethod reqmethod"},
	{atTop, fieldTarget, 0, "requesturi requesttarget clientrequesturi originalurl target " +
		"urloriginal"},
	{atTop, fieldTarget, 1, "uri path requestpath urlpath clientrequestpath uripath csuristem " +
		"reqpath"},
	{atTop, fieldTarget, 2, "requesturl fullurl urlfull"},
	{atTop, fieldURL, 3, "url"},
	{atTop, fieldLine, 4, "requestline"},
	{atTop, fieldHost, 0, "httphost requesthost clientrequesthost authority vhost virtualhost " +
		"urldomain cshost reqhost"},
	{atTop, fieldHost, 1, "host"},
	{atTop, fieldHost, 2, "servername domain"},
	{atTop, fieldRequest, 5, "request req httprequest http properties attributes jsonpayload " +
		"protopayload proxy network"},
	{atTop, fieldText, 0, "log line shortmessage"},
	{atTop, fieldMessage, 0, "message msg"},
	{atTop, fieldStatus, 0, "status statuscode responsestatus responsestatuscode responsecode " +
		"httpstatus httpstatuscode httpresponsestatuscode edgeresponsestatus downstreamstatus " +
		"scstatus"},
	{atTop, fieldStatus, 1, "originstatus upstreamstatus originresponsestatus code"},
	{atTop, fieldResponse, 0, "response res"},
	{atTop, fieldHeaders, 0, "headers header requestheaders reqheaders"},
	{atTop, fieldAgent, 0, "useragent"},
	{inClient, fieldPeer, 0, "ip address addr host remoteaddress"},
	{inResponse, fieldStatus, 0, "status statuscode"},
	{inURL, fieldTarget, 0, "original raw full"},
	{inURL, fieldTarget, 1, "path"},
	{inURL, fieldHost, 0, "domain host hostname"},
}

// Names are what members are called, by place. The zero value is [members].
type Names struct {
	tables    []map[string]meaning
	hasClient bool // the client is only what was named so
}

func (n *Names) at(in place) map[string]meaning {
	if n.tables == nil {
		return meanings[in]
	}
	return n.tables[in]
}

// meanings are members by place and name.
var meanings = func() (all [inAgent + 1]map[string]meaning) {
	for in := range all {
		all[in] = map[string]meaning{}
	}
	for _, m := range members {
		for name := range strings.FieldsSeq(m.names) {
			all[m.in][name] = meaning{m.field, m.rank, atTop, -1}
		}
	}
	return all
}()

// namedFields are the fields that [ParseNames] knows, and those that may hold the same.
var namedFields = map[string][]field{
	"client": {fieldAddr, fieldPeer, fieldClient}, "time": {fieldTime},
	"method": {fieldMethod}, "path": {fieldTarget, fieldURL}, "request": {fieldLine},
	"status": {fieldStatus, fieldResponse}, "host": {fieldHost},
}

// ParseNames reads names of members, such as client=user.ip,time=when. A member of an object is
// named with that of the object. Only what is named so is read for a field.
func ParseNames(text string) (n Names, err error) {
	var c collector
	for i, pair := range strings.Split(text, ",") {
		to, path, ok := strings.Cut(strings.TrimSpace(pair), "=")
		fields := namedFields[to]
		if ok = ok && fields != nil && path != ""; text != "" && !ok {
			return n, &headgate.InvalidError{Field: "field", Value: quoted(text), Want: "client, " +
				"time, method, path, request, status or host, = and a name, joined by commas"}
		}
		if !ok {
			return n, nil
		}
		if i == 0 {
			for _, table := range meanings {
				n.tables = append(n.tables, maps.Clone(table))
			}
		}
		for _, table := range n.tables {
			maps.DeleteFunc(table, func(_ string, m meaning) bool {
				return slices.Contains(fields, m.field)
			})
		}
		n.hasClient = n.hasClient || to == "client"
		m := meaning{fields[0], 0, atTop, -1}
		n.tables[atTop][string(c.canonical([]byte(path)))] = m
		at, parts := atTop, strings.Split(path, ".")
		for _, part := range parts[:len(parts)-1] {
			at = n.object(at, string(c.canonical([]byte(part))))
		}
		n.tables[at][string(c.canonical([]byte(parts[len(parts)-1])))] = m
	}
	return n, nil
}

// object returns the place of the members of an object, which it makes.
func (n *Names) object(in place, name string) place {
	old := n.tables[in][name]
	if old.in != atTop {
		return old.in
	}
	to := place(len(n.tables))
	table := map[string]meaning{}
	if old.field == fieldRequest {
		table = maps.Clone(n.tables[atTop])
	}
	n.tables = append(n.tables, table)
	n.tables[in][name] = meaning{fieldRequest, 5, to, -1}
	return to
}

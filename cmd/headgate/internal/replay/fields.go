package replay

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/jsonscan"
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
	{atTop, fieldAddr, 0, "clientip clientaddress clienthost cliip cip"},
	{atTop, fieldAddr, 1, "clientaddr"}, // of Traefik: the peer of ClientHost
	{atTop, fieldAddr, 2, "remoteaddr remoteip remotehost remoteaddress " +
		"downstreamremoteaddress sourceip srcip calleripaddress networkclientip"},
	{atTop, fieldAddr, 3, "ip ipaddress ipaddr addr userip realip xrealip httpxrealip " +
		"cfconnectingip httpcfconnectingip trueclientip networkpeeraddress"},
	{atTop, fieldPeer, 3, "peer peeraddr remote"},
	{atTop, fieldPeer, 5, "xforwardedfor httpxforwardedfor forwardedfor fwd"},
	{atTop, fieldClient, 4, "client source"},
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

// meanings are members by place and name.
var meanings = func() (all [inAgent + 1]map[string]meaning) {
	for in := range all {
		all[in] = map[string]meaning{}
	}
	for _, m := range members {
		for name := range strings.FieldsSeq(m.names) {
			all[m.in][name] = meaning{field: m.field, rank: m.rank, header: -1}
		}
	}
	return all
}()

// Names are the members of JSON that hold some fields, instead of those of [members].
type Names []named

// named is a member, and the fields that it replaces; the first is its own.
type named struct {
	path   string // with the names of the objects around it, joined by dots
	fields []field
	back   uint8 // how many addresses of a list come after the one that counts
}

// hold reports whether a field is read from names.
func (n Names) hold(f field) bool {
	return slices.ContainsFunc(n, func(m named) bool { return slices.Contains(m.fields, f) })
}

// namedFields are the fields that [ParseNames] knows, and those that may hold the same.
var namedFields = map[string][]field{
	"client": {fieldAddr, fieldPeer, fieldClient}, "time": {fieldTime},
	"method": {fieldMethod}, "path": {fieldTarget, fieldURL}, "request": {fieldLine},
	"status": {fieldStatus, fieldResponse}, "host": {fieldHost},
}

// fromEnd is the place of an address in a list, counted from its end.
var fromEnd = regexp.MustCompile(`^(.+)\[-([1-9]\d?)\]$`)

// ParseNames reads names of members, such as client=user.ip,time=when. A member of an object is
// named with that of the object. Only what is named so is read for a field. Of a list of addresses,
// the last counts, or with client=NAME[-2] the one before.
func ParseNames(text string) (n Names, err error) {
	for pair := range strings.SplitSeq(text, ",") {
		to, path, _ := strings.Cut(strings.TrimSpace(pair), "=")
		back := 1
		if at := fromEnd.FindStringSubmatch(path); at != nil && to == "client" {
			path = at[1]
			back, _ = strconv.Atoi(at[2])
		}
		if fields := namedFields[to]; fields != nil && path != "" {
			n = append(n, named{path, fields, uint8(back - 1)})
		} else if text != "" {
			want := "client, time, method, path, request, status or host, = and a name, " +
				"joined by commas"
			return nil, &headgate.InvalidError{Field: "field", Value: quoted(text), Want: want}
		}
	}
	return n, nil
}

// membersOf yields the names and values of an object.
func membersOf(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s := jsonscan.Of(object)
		for s.Enter('{') || s.Enter(',') {
			name, ok := s.Name()
			value, whole := s.Value()
			if !ok || !whole || !yield(string(bytes.Trim(name, `"`)), value) {
				return
			}
		}
	}
}

// memberOf returns the value of a member, or nil.
func memberOf(object []byte, path string) (found []byte) {
	for name, value := range membersOf(object) {
		if rest, ok := strings.CutPrefix(path, name); ok && rest == "" {
			return value
		} else if ok && rest[0] == '.' && found == nil {
			found = memberOf(value, rest[1:])
		}
	}
	return found
}

package replay

import "strings"

// field is the part of a request that a member of a JSON log line holds.
type field uint8

const (
	noField field = iota
	fieldTime
	fieldAddr
	fieldMethod
	fieldTarget
	fieldLine // "GET /path HTTP/1.1"
	fieldHost
	fieldStatus
	fieldRequest  // an object about the request, whose members are named as at the top
	fieldResponse // an object about the response
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
// Google Cloud, Cloudflare and the common Node and Python loggers.
var members = []struct {
	in    place
	field field
	rank  uint8
	names string
}{
	{atTop, fieldTime, 0, "timestamp time ts timelocal timeiso8601 starttime startutc"},
	{atTop, fieldTime, 1, "edgestarttimestamp datetime date msec startlocal eventtime timems " +
		"timeunix t"},
	{atTop, fieldTime, 2, "requesttime requesttimeepoch requesttimestamp accessdate receivedat " +
		"asctime"},
	{atTop, fieldAddr, 0, "clientip clientaddr clientaddress clienthost"},
	{atTop, fieldAddr, 1, "remoteaddr remoteip remotehost remoteaddress remote " +
		"downstreamremoteaddress sourceip srcip"},
	{atTop, fieldAddr, 2, "ip ipaddress ipaddr peer peeraddr addr"},
	{atTop, fieldClient, 3, "client source"},
	{atTop, fieldMethod, 0, "method requestmethod httpmethod httprequestmethod " +
		"clientrequestmethod verb"},
	{atTop, fieldTarget, 0, "requesturi requesttarget clientrequesturi originalurl target " +
		"urloriginal"},
	{atTop, fieldTarget, 1, "uri path requestpath urlpath clientrequestpath uripath"},
	{atTop, fieldTarget, 2, "requesturl fullurl urlfull"},
	{atTop, fieldURL, 3, "url"},
	{atTop, fieldLine, 4, "requestline"},
	{atTop, fieldHost, 0, "httphost requesthost clientrequesthost authority vhost virtualhost " +
		"urldomain"},
	{atTop, fieldHost, 1, "host"},
	{atTop, fieldHost, 2, "servername domain"},
	{atTop, fieldRequest, 5, "request req httprequest http"},
	{atTop, fieldStatus, 0, "status statuscode responsestatus responsestatuscode responsecode " +
		"httpstatus httpstatuscode httpresponsestatuscode edgeresponsestatus downstreamstatus " +
		"scstatus"},
	{atTop, fieldStatus, 1, "originstatus upstreamstatus originresponsestatus code"},
	{atTop, fieldResponse, 0, "response res"},
	{atTop, fieldHeaders, 0, "headers header requestheaders reqheaders"},
	{atTop, fieldAgent, 0, "useragent"},
	{inClient, fieldAddr, 0, "ip address addr host remoteaddress"},
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
			all[m.in][name] = meaning{m.field, m.rank, -1}
		}
	}
	return all
}()

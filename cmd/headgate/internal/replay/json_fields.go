package replay

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

// named returns the field that a member holds, by its canonical name. If a line has several
// members for one field, the one of the lowest rank counts. The names are those of nginx and
// Apache configurations in use, Caddy, Traefik, Envoy, HAProxy, the Elastic Common Schema,
// Google Cloud, Cloudflare and the common Node and Python loggers.
func named(name []byte, in place) (f field, rank uint8) {
	switch in {
	case inClient:
		return namedInClient(name)
	case inResponse:
		return namedInResponse(name)
	case inURL:
		return namedInURL(name)
	case inHeaders, inAgent:
		return noField, 0
	}
	switch string(name) {
	case "timestamp", "time", "ts", "timelocal", "timeiso8601", "starttime", "startutc":
		return fieldTime, 0
	case "edgestarttimestamp", "datetime", "date", "msec", "startlocal", "eventtime",
		"timems", "timeunix", "t":
		return fieldTime, 1
	case "requesttime", "requesttimeepoch", "requesttimestamp", "accessdate",
		"receivedat", "asctime":
		return fieldTime, 2
	case "clientip", "clientaddr", "clientaddress", "clienthost":
		return fieldAddr, 0
	case "remoteaddr", "remoteip", "remotehost", "remoteaddress", "remote",
		"downstreamremoteaddress", "sourceip", "srcip":
		return fieldAddr, 1
	case "ip", "ipaddress", "ipaddr", "peer", "peeraddr", "addr":
		return fieldAddr, 2
	case "client", "source":
		return fieldClient, 3
	case "method", "requestmethod", "httpmethod", "httprequestmethod",
		"clientrequestmethod", "verb":
		return fieldMethod, 0
	default:
		return namedRequest(name)
	}
}

func namedRequest(name []byte) (f field, rank uint8) {
	switch string(name) {
	case "requesturi", "requesttarget", "clientrequesturi", "originalurl", "target", "urloriginal":
		return fieldTarget, 0
	case "uri", "path", "requestpath", "urlpath", "clientrequestpath", "uripath":
		return fieldTarget, 1
	case "requesturl", "fullurl", "urlfull":
		return fieldTarget, 2
	case "url":
		return fieldURL, 3
	case "requestline":
		return fieldLine, 4
	case "httphost", "requesthost", "clientrequesthost", "authority", "vhost", "virtualhost",
		"urldomain":
		return fieldHost, 0
	case "host":
		return fieldHost, 1
	case "servername", "domain":
		return fieldHost, 2
	case "request", "req", "httprequest", "http":
		return fieldRequest, 5
	case "status", "statuscode", "responsestatus", "responsestatuscode", "responsecode",
		"httpstatus", "httpstatuscode", "httpresponsestatuscode", "edgeresponsestatus",
		"downstreamstatus", "scstatus":
		return fieldStatus, 0
	case "originstatus", "upstreamstatus", "originresponsestatus", "code":
		return fieldStatus, 1
	case "response", "res":
		return fieldResponse, 0
	case "headers", "header", "requestheaders", "reqheaders":
		return fieldHeaders, 0
	case "useragent":
		return fieldAgent, 0
	}
	return noField, 0
}

func namedInClient(name []byte) (f field, rank uint8) {
	switch string(name) {
	case "ip", "address", "addr", "host", "remoteaddress":
		return fieldAddr, 0
	}
	return noField, 0
}

func namedInResponse(name []byte) (f field, rank uint8) {
	switch string(name) {
	case "status", "statuscode":
		return fieldStatus, 0
	}
	return noField, 0
}

func namedInURL(name []byte) (f field, rank uint8) {
	switch string(name) {
	case "original", "raw", "full":
		return fieldTarget, 0
	case "path":
		return fieldTarget, 1
	case "domain", "host", "hostname":
		return fieldHost, 0
	}
	return noField, 0
}

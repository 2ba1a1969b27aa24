package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

var codeNames = []string{"UNKNOWN", "OK", "OVER_LIMIT"}

type jsonResponse struct {
	OverallCode          string          `json:"overallCode,omitempty"`
	Statuses             []jsonStatus    `json:"statuses,omitempty"`
	ResponseHeadersToAdd []jsonHeader    `json:"responseHeadersToAdd,omitempty"`
	RawBody              []byte          `json:"rawBody,omitempty"`
	DynamicMetadata      json.RawMessage `json:"dynamicMetadata,omitempty"`
}

type jsonStatus struct {
	Code               string          `json:"code,omitempty"`
	CurrentLimit       *jsonLimit      `json:"currentLimit,omitempty"`
	LimitRemaining     uint32          `json:"limitRemaining,omitempty"`
	DurationUntilReset json.RawMessage `json:"durationUntilReset,omitempty"`
}

type jsonLimit struct {
	Name            string `json:"name,omitempty"`
	RequestsPerUnit uint32 `json:"requestsPerUnit,omitempty"`
	Unit            string `json:"unit,omitempty"`
	UnitMultiplier  uint32 `json:"unitMultiplier,omitempty"`
}

type jsonHeader struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// EncodeJSON returns r as a RateLimitResponse in the JSON form of protobuf.
func EncodeJSON(r *envoy.Response) ([]byte, error) {
	out := jsonResponse{
		OverallCode: enumName(codeNames, r.Code),
		Statuses:    make([]jsonStatus, len(r.Statuses)),
		RawBody:     r.RawBody,
	}
	for i := range r.Statuses {
		out.Statuses[i] = statusJSON(&r.Statuses[i])
	}
	for _, h := range r.Headers {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, jsonHeader(h))
	}
	if r.Metadata != nil {
		metadata, err := metadataJSON(r.Metadata)
		if err != nil {
			return nil, fmt.Errorf("ratelimit response: dynamic_metadata: %w", err)
		}
		out.DynamicMetadata = metadata
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(out)
	return b.Bytes(), err
}

func statusJSON(s *envoy.Status) jsonStatus {
	out := jsonStatus{Code: enumName(codeNames, s.Code), LimitRemaining: s.Remaining}
	if s.HasLimit {
		out.CurrentLimit = &jsonLimit{
			Name:            s.Limit.Name,
			RequestsPerUnit: s.Limit.RequestsPerUnit,
			Unit:            enumName(unitNames, s.Limit.Unit),
			UnitMultiplier:  s.Limit.Multiplier,
		}
		out.DurationUntilReset = durationJSON(s.Reset)
	}
	return out
}

func durationJSON(d time.Duration) json.RawMessage {
	b, err := protojson.Marshal(durationpb.New(d))
	if err != nil {
		return nil // there is no time.Duration that protojson refuses
	}
	return b
}

func metadataJSON(encoded []byte) (json.RawMessage, error) {
	var s structpb.Struct
	if err := proto.Unmarshal(encoded, &s); err != nil {
		return nil, err
	}
	return protojson.Marshal(&s)
}

// enumName is the name of a value, and empty for 0, which JSON leaves out.
func enumName[E ~int32](names []string, v E) string {
	if v <= 0 || int(v) >= len(names) {
		return ""
	}
	return names[v]
}

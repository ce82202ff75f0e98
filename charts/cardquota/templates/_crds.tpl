{{/* Schemas that the CRDs use more than once; each is a flow mapping on one line. */}}

{{- define "cardquota.crd.quantity" -}}
{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'}
{{- end }}

{{- define "cardquota.crd.resources" -}}
{type: object, additionalProperties: {{ include "cardquota.crd.quantity" . }}}
{{- end }}

{{- define "cardquota.crd.count" -}}
{type: integer, format: int32, minimum: 0}
{{- end }}

{{- define "cardquota.crd.strings" -}}
{type: array, items: {type: string}}
{{- end }}

{{/* An object that Volcano's schedulers read and we pass through as it is. */}}
{{- define "cardquota.crd.open" -}}
{type: object, x-kubernetes-preserve-unknown-fields: true}
{{- end }}

{{/*
DeviceClass to what may be used of it. A null would be dropped before anybody sees it, and would then mean "not limited";
being nullable it is kept, and the rules refuse it.
*/}}
{{- define "cardquota.crd.devices" -}}
type: object
maxProperties: 256
additionalProperties:
  type: object
  nullable: true
  required: [count]
  properties:
    count: {type: integer, format: int64, minimum: 0}
    capacity:
      type: object
      maxProperties: 64
      additionalProperties: {{ include "cardquota.crd.quantity" . | replace "{anyOf" "{nullable: true, anyOf" }}
      x-kubernetes-validations:
      - rule: self.all(dimension, self[dimension] != null)
        message: a capacity must not be null; leave it out to set no limit
x-kubernetes-validations:
- rule: self.all(class, self[class] != null)
  message: an entry of a DeviceClass must not be null; leave it out to set no limit
{{- end }}

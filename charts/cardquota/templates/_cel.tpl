{{/*
Expressions in CEL that the API server evaluates, in match conditions and in policies.

Fields are reached by optional selection throughout (`a.?b.orValue([])`), which does not fail where a parent is missing. A
failure in a match condition refuses the object and shows the user the expression. A field that is null is there, though,
and takes part with its null: the API server drops nulls everywhere but in `containers`, which has to be written.
*/}}

{{/* The annotations of a variable: an object, or a pod template given as an optional. */}}
{{- define "cardquota.cel.annotations" -}}
{{ . }}.?metadata.?annotations.orValue({})
{{- end }}

{{/* Whether some (init) container names, in limits or requests, a resource that starts with one of .prefixes. */}}
{{- define "cardquota.cel.resource" -}}
[{{ .pod }}.?spec.?containers.orValue([]), {{ .pod }}.?spec.?initContainers.orValue([])].exists(list,
  dyn(list) != null && list.exists(container,
    [container.?resources.?limits.orValue({}), container.?resources.?requests.orValue({})].exists(amounts,
      amounts.exists(resource, {{ .prefixes | toJson }}.exists(prefix, resource.startsWith(prefix))))))
{{- end }}

{{/* Whether a pod asks for mGPU. Takes the variable that holds the pod. */}}
{{- define "cardquota.cel.asksMgpu" -}}
{{ include "cardquota.cel.resource" (dict "pod" . "prefixes" (list "vke.volcengine.com/mgpu-")) }}
{{- end }}

{{/*
Whether a pod asks for anything of ours: cards, mGPU or claims, as far as the feature is on. Takes (dict "features"
<switches> "pod" <variable>). An annotation that is there but empty counts; the webhook then finds nothing to do.
*/}}
{{- define "cardquota.cel.asks" -}}
{{- $annotations := include "cardquota.cel.annotations" .pod }}
{{- $asks := list }}
{{- with .features }}
{{- if .cards }}
{{- $asks = append $asks (printf "'volcano.sh/card.name' in %s" $annotations) }}
{{- end }}
{{- if .dra }}
{{- $asks = append $asks (printf "size(%s.?spec.?resourceClaims.orValue([])) > 0" $.pod) }}
{{- end }}
{{- if .mgpu }}
{{- $asks = append $asks (printf "'vke.volcengine.com/container-multiple-gpu' in %s" $annotations) }}
{{- $asks = append $asks (include "cardquota.cel.asksMgpu" $.pod) }}
{{- end }}
{{- end }}
{{- $asks | join " ||\n" | default "false" }}
{{- end }}

{{/* Whether an annotation differs between the old object and the new one. Takes the key. */}}
{{- define "cardquota.cel.changed" -}}
{{ include "cardquota.cel.annotations" "object" }}[?'{{ . }}'] != {{ include "cardquota.cel.annotations" "oldObject" }}[?'{{ . }}']
{{- end }}

{{/* Whether a pod waits at our gate. Takes the variable that holds the pod. */}}
{{- define "cardquota.cel.gated" -}}
{{ . }}.?spec.?schedulingGates.orValue([]).exists(gate, gate.name == 'cardquota.io/quota')
{{- end }}

{{/* Whether a pod update takes our gate away. */}}
{{- define "cardquota.cel.gateGoes" -}}
{{ include "cardquota.cel.gated" "oldObject" }} &&
!{{ include "cardquota.cel.gated" "object" }}
{{- end }}

{{/* Whether an annotation is a result that the node side may write too. Takes the variable that holds the key. */}}
{{- define "cardquota.cel.isResult" -}}
{{ . }}.startsWith('vke.volcengine.com/gpu-index-') || {{ . }} == 'vke.volcengine.com/assumed'
{{- end }}

{{/* Whether an annotation is a record that only the controller writes. Takes the variable that holds the key. */}}
{{- define "cardquota.cel.isRecord" -}}
{{ include "cardquota.cel.isResult" . }} || {{ . }}.startsWith('cardquota.io/')
{{- end }}

{{/* Whether the request comes from somebody other than the controller. */}}
{{- define "cardquota.cel.notController" -}}
request.userInfo.username != '{{ include "cardquota.controllerAccount" . }}'
{{- end }}

{{/*
Whether a pod request writes something that the policies protect, in one expression for a match condition, which knows no
variables. Wider than the policies in details; the webhook decides.
*/}}
{{- define "cardquota.cel.touchesProtected" -}}
{{- $now := include "cardquota.cel.annotations" "object" }}
{{- $was := include "cardquota.cel.annotations" "oldObject" }}
{{- $fixed := printf "(%s || key in %s)" (include "cardquota.cel.isRecord" "key") (include "cardquota.cel.fixedKeys" .) -}}
(request.operation == 'CREATE' && {{ $now }}.exists(key, {{ include "cardquota.cel.isRecord" "key" }})) ||
(request.operation == 'UPDATE' && (
  ({{ include "cardquota.cel.gateGoes" . | nindent 2 | trim }}) ||
  {{ $now }}.exists(key, {{ $fixed }} && {{ $was }}[?key] != optional.of({{ $now }}[key])) ||
  {{ $was }}.exists(key, {{ $fixed }} && !(key in {{ $now }})) ||
  object.?metadata.?labels[?'cardquota.io/managed'] != oldObject.?metadata.?labels[?'cardquota.io/managed']))
{{- end }}

{{/* Annotations that users write, but not at any time. */}}
{{- define "cardquota.cel.fixedKeys" -}}
['volcano.sh/card.name', 'scheduling.volcano.sh/queue-name', 'volcano.sh/queue-name', 'scheduling.k8s.io/group-name', 'vke.volcengine.com/container-multiple-gpu', 'vke.volcengine.com/mgpu-compute-policy']
{{- end }}

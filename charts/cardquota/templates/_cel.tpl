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

{{/*
Whether some (init) container names, in limits or requests, an extended resource: one that no scheduler knows by itself. Takes
(dict "pod" <variable> "prefixes" <only those that start so; all when empty> "except" <names that do not count>).
*/}}
{{- define "cardquota.cel.extendedResource" -}}
{{- $implicit := "deviceclass.resource.kubernetes.io/" -}}
{{- $is := list "resource.contains('/')" "!resource.startsWith('vke.volcengine.com/mgpu-')" -}}
{{- $is = append $is (printf "(!resource.contains('kubernetes.io/') || resource.startsWith('%s'))" $implicit) -}}
{{- with .prefixes }}
{{- $is = append $is (printf "%s.exists(prefix, resource.startsWith(prefix))" (toJson .)) -}}
{{- end }}
{{- with .except }}
{{- $is = append $is (printf "!(resource in %s)" (toJson .)) -}}
{{- end -}}
[{{ .pod }}.?spec.?containers.orValue([]), {{ .pod }}.?spec.?initContainers.orValue([])].exists(list,
  dyn(list) != null && list.exists(container,
    [container.?resources.?limits.orValue({}), container.?resources.?requests.orValue({})].exists(amounts,
      amounts.exists(resource, {{ $is | join " && " }}))))
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

{{/*
Whether a pod asks, or may do so: a DeviceClass may serve any extended resource, and no expression can look at DeviceClasses.
The webhook decides. It does so too about cards that nobody named, where they are inferred. Takes (dict "root" $ "pod"
<variable>).
*/}}
{{- define "cardquota.cel.mayAsk" -}}
{{- $features := .root.Values.features -}}
{{ include "cardquota.cel.asks" (dict "features" $features "pod" .pod) }}
{{- if and $features.cards (eq (.root.Values.cards).podsWithoutCardName "infer") }} ||
{{ include "cardquota.cel.extendedResource" (dict "pod" .pod "prefixes" .root.Values.cards.resourcePrefixes) }}
{{- end }}
{{- if $features.dra }} ||
{{ include "cardquota.cel.extendedResource" (dict "pod" .pod "except" (.root.Values.dra).notDevices) }}
{{- end }}
{{- end }}

{{/*
Whether a pod seems to be meant for a card, as far as `podsWithoutCardName` cares: it misspells the card's name, or asks
for a card's resource. Takes (dict "root" $ "pod" <variable>).
*/}}
{{- define "cardquota.cel.looksLikeCard" -}}
{{- $cards := .root.Values.cards -}}
'volcano.sh/card.card' in {{ include "cardquota.cel.annotations" .pod }}
{{- if ne $cards.podsWithoutCardName "ignore" }} ||
{{ include "cardquota.cel.extendedResource" (dict "pod" .pod "prefixes" $cards.resourcePrefixes) }}
{{- end }}
{{- end }}

{{/* Whether a pod names a strategy of CrossQuota's that nobody knows. Takes the variable that holds the pod. */}}
{{- define "cardquota.cel.unknownStrategy" -}}
!({{ include "cardquota.cel.annotations" . }}[?'volcano.sh/crossquota-scoring-strategy'].orValue('most-allocated') in
  ['most-allocated', 'least-allocated'])
{{- end }}

{{/*
Whether the pods of a template would be gated, refused or warned about, so that whoever writes it is told at once. Takes
(dict "root" $ "pod" <variable>).
*/}}
{{- define "cardquota.cel.worthJudging" -}}
{{- $annotations := include "cardquota.cel.annotations" .pod }}
{{- $worth := list (printf "%s.exists(key, %s)" $annotations (include "cardquota.cel.isRecord" "key")) }}
{{- with .root.Values.features }}
{{- $worth = prepend $worth (include "cardquota.cel.mayAsk" $) }}
{{- if .cards }}
{{- $worth = append $worth (include "cardquota.cel.looksLikeCard" $) }}
{{- end }}
{{- if .crossQuota }}
{{- $worth = append $worth (include "cardquota.cel.unknownStrategy" $.pod) }}
{{- end }}
{{- end }}
{{- $worth | join " ||\n" }}
{{- end }}

{{/* Whether a queue limits devices by keys of its capability. Takes the variable that holds the queue. */}}
{{- define "cardquota.cel.hasDeviceKeys" -}}
{{ . }}.?spec.?capability.orValue({}).exists(key, key.startsWith('deviceclass/') || key.contains('.deviceclass/'))
{{- end }}

{{/*
Whether a queue write brings a quota or says who may use the queue, changes or removes any of that, in any of the places where
it may stand. Takes the features.
*/}}
{{- define "cardquota.cel.quotaWritten" -}}
{{- $places := list "?metadata.?annotations[?'cardquota.io/namespaces']" "?metadata.?annotations[?'cardquota.io/namespace-selector']" }}
{{- if .cards }}
{{- $places = append $places "?metadata.?annotations[?'volcano.sh/card.quota']" }}
{{- end }}
{{- if .dra }}
{{- $places = concat $places (list "?metadata.?annotations[?'volcano.sh/dra.quota']" "?spec.?dra") }}
{{- end }}
{{- $brought := list }}
{{- $changed := list }}
{{- range $places }}
{{- $brought = append $brought (printf "object.%s.hasValue()" .) }}
{{- $changed = append $changed (printf "object.%s != oldObject.%s" . .) }}
{{- end }}
{{- if .dra }}
{{- $now := include "cardquota.cel.hasDeviceKeys" "object" }}
{{- $was := include "cardquota.cel.hasDeviceKeys" "oldObject" }}
{{- $brought = append $brought $now }}
{{- $changed = append $changed (printf "(object.?spec.?capability != oldObject.?spec.?capability && (\n  %s ||\n  %s))" $now $was) }}
{{- end }}
(request.operation == 'CREATE' && (
  {{- $brought | join " ||\n" | nindent 2 }})) ||
(request.operation == 'UPDATE' && (
  {{- $changed | join " ||\n" | nindent 2 }}))
{{- end }}

{{/*
Whether a queue write puts the queue below another one than the root, changes the capability for devices beside a card quota, or comes from a
kubectl that sent a device quota which the API server has dropped.
*/}}
{{- define "cardquota.cel.deviceHint" -}}
{{- $applied := "kubectl.kubernetes.io/last-applied-configuration" -}}
(!(object.?spec.?parent.orValue('') in ['', 'root']) &&
  (request.operation == 'CREATE' || object.?spec.?parent != oldObject.?spec.?parent))
{{- if .Values.features.cards }} ||
(request.operation == 'UPDATE' && {{ include "cardquota.cel.annotations" "object" }}[?'volcano.sh/card.quota'].hasValue() &&
  object.?spec.?capability.orValue({}).exists(key, key.contains('/') &&
    object.spec.?capability[?key] != oldObject.?spec.?capability[?key]))
{{- end }}
{{- if .Values.features.dra }} ||
({{ include "cardquota.cel.annotations" "object" }}[?'{{ $applied }}'].orValue('').contains('"dra"') &&
  (request.operation == 'CREATE' || {{ include "cardquota.cel.changed" $applied }}))
{{- end }}
{{- end }}

{{/* Whether an annotation differs between the old object and the new one. Takes the key. */}}
{{- define "cardquota.cel.changed" -}}
{{ include "cardquota.cel.annotations" "object" }}[?'{{ . }}'] != {{ include "cardquota.cel.annotations" "oldObject" }}[?'{{ . }}']
{{- end }}

{{/* Whether a node write brings or changes one of CrossQuota's limits. */}}
{{- define "cardquota.cel.limitChanged" -}}
{{- $now := include "cardquota.cel.annotations" "object" }}
{{- $was := include "cardquota.cel.annotations" "oldObject" -}}
{{ $now }}.exists(key, key.startsWith('volcano.sh/crossquota-') && (
  request.operation == 'CREATE' || {{ $was }}[?key] != optional.of({{ $now }}[key])))
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
{{ include "cardquota.cel.isResult" . }} || ({{ . }}.startsWith('cardquota.io/') && !({{ include "cardquota.cel.namesGang" . }}))
{{- end }}

{{/* Whether an annotation says to which gang a pod belongs: users write it, on pod templates. Takes the variable that holds the key. */}}
{{- define "cardquota.cel.namesGang" -}}
{{ . }} in ['cardquota.io/gang-name', 'cardquota.io/gang-size']
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
['volcano.sh/card.name', 'scheduling.volcano.sh/queue-name', 'volcano.sh/queue-name', 'scheduling.k8s.io/group-name', 'vke.volcengine.com/container-multiple-gpu', 'vke.volcengine.com/mgpu-compute-policy', 'cardquota.io/gang-name', 'cardquota.io/gang-size']
{{- end }}

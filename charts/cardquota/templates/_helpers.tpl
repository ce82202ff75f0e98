{{/*
Names are fixed, not derived from the release: a cluster has one cardquota. A second release is refused, see checks.yaml.
*/}}
{{- define "cardquota.webhook" -}}cardquota-webhook{{- end }}
{{- define "cardquota.controller" -}}cardquota-controller{{- end }}
{{- define "cardquota.extender" -}}cardquota-extender{{- end }}
{{- define "cardquota.certificates" -}}cardquota-certificates{{- end }}
{{- define "cardquota.authority" -}}cardquota-controller{{- end }}
{{- define "cardquota.mutating" -}}cardquota-mutating{{- end }}
{{- define "cardquota.validating" -}}cardquota-validating{{- end }}
{{- define "cardquota.lease" -}}cardquota{{- end }}
{{- define "cardquota.usage" -}}cardquota-usage{{- end }}

{{/* The user name under which the controller asks the API server. */}}
{{- define "cardquota.controllerAccount" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "cardquota.controller" . }}
{{- end }}

{{/* The keys of a list of maps, each once: the first map that has a key says what it is, an empty text included. */}}
{{- define "cardquota.firstOf" -}}
{{- $all := dict }}
{{- range reverse . }}
{{- range $key, $value := . }}
{{- $all = set $all $key $value }}
{{- end }}
{{- end }}
{{- with $all }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/*
Labels of every object. Takes (dict "root" $ "component" "webhook" "labels" (dict)); all but the root may be left out. Values may
change what describes, not by what we are selected.
*/}}
{{- define "cardquota.labels" -}}
{{- $selected := include "cardquota.selectorLabels" . | fromYaml }}
{{- $described := dict
  "app.kubernetes.io/part-of" .root.Chart.Name
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") }}
{{- include "cardquota.firstOf" (list $selected .labels .root.Values.commonLabels $described) }}
{{- end }}

{{/* Labels that never change during the life of a Deployment. */}}
{{- define "cardquota.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The metadata that all objects share, after their name and namespace. */}}
{{- define "cardquota.metadata" -}}
labels:
  {{- include "cardquota.labels" . | nindent 2 }}
{{- with .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The same for a hook, which is there only while it runs. Takes (dict "root" $ "component" "uninstall" "hook" "pre-delete"
"weight" 0).
*/}}
{{- define "cardquota.hookMetadata" -}}
labels:
  {{- include "cardquota.labels" . | nindent 2 }}
annotations:
  {{- $hook := dict
    "helm.sh/hook" .hook
    "helm.sh/hook-weight" .weight
    "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
  {{- include "cardquota.firstOf" (list $hook .root.Values.commonAnnotations) | nindent 2 }}
{{- end }}

{{- define "cardquota.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/*
Namespaces whose objects are our business. The label kubernetes.io/metadata.name is set by the API server and cannot be
changed, so nobody gets out of the quota by labelling a namespace. Nor by creating one: those that are exempt by themselves
exist in every cluster, and Volcano's does not. Nothing of Volcano's own asks for cards, so nothing of it is held.
*/}}
{{- define "cardquota.namespaceSelector" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{ concat (list "kube-system" "kube-node-lease" .Release.Namespace) (.Values.webhook.exemptNamespaces | default list) | uniq | toJson }}
{{- with .Values.webhook.namespaceSelectorExpressions }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* "true" where spec.dra is added to a definition of Queue that lacks it, else empty. */}}
{{- define "cardquota.extendsQueueCRD" -}}
{{- if and .Values.features.dra (ne ((.Values.dra).queueCRD | default "extend") "leave") }}true{{ end }}
{{- end }}

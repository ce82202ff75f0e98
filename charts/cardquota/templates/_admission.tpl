{{/* What the entries of both webhook configurations share. */}}

{{/* Takes (dict "root" $ "component" "webhook" "path" "/..."). The leader adds the authority, and a path that is empty here. */}}
{{- define "cardquota.admission.client" -}}
admissionReviewVersions: [v1]
matchPolicy: Equivalent
clientConfig:
  service:
    name: {{ include (print "cardquota." .component) .root }}
    namespace: {{ .root.Release.Namespace }}
    {{- with .path }}
    path: {{ . }}
    {{- end }}
    port: 443
{{- end }}

{{/*
The path of the binding hook: none, for the leader writes it and nobody else knows it. An upgrade of the first release leaves
the plain path in place that its replicas serve; the leader exchanges it when they are gone.
*/}}
{{- define "cardquota.admission.hookPath" -}}
{{- $stored := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" (include "cardquota.mutating" .) }}
{{- range $entry := ($stored | default dict).webhooks }}
{{- if eq $entry.name "bindings.cardquota.io" }}
{{- if eq (dig "clientConfig" "service" "path" "" $entry) "/mutate/bindings" }}/mutate/bindings{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* One match condition. Takes (list name expression). */}}
{{- define "cardquota.admission.condition" -}}
- name: {{ first . }}
  expression: |-
    {{- last . | trim | nindent 4 }}
{{- end }}

{{/* For entries that only bring an error forward: another entry, or the controller, decides in the end. */}}
{{- define "cardquota.admission.early" -}}
namespaceSelector:
  {{- include "cardquota.namespaceSelector" . | nindent 2 }}
failurePolicy: Ignore
sideEffects: None
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
{{- end }}

{{/* What the entries of both webhook configurations share. */}}

{{/* Takes (dict "root" $ "component" "webhook" "path" "/..."). The certificate authority is injected by the processes. */}}
{{- define "cardquota.admission.client" -}}
admissionReviewVersions: [v1]
matchPolicy: Equivalent
clientConfig:
  service:
    name: {{ include (print "cardquota." .component) .root }}
    namespace: {{ .root.Release.Namespace }}
    path: {{ .path }}
    port: 443
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

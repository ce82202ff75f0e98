{{/* A policy's binding: it denies. Takes the policy's name and the root. */}}
{{- define "cardquota.policy.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  {{- include "cardquota.metadata" (dict "root" .root "component" "policy") | nindent 2 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}

{{/* The head of a policy up to its rules. */}}
{{- define "cardquota.policy.head" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  {{- include "cardquota.metadata" (dict "root" .root "component" "policy") | nindent 2 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    namespaceSelector:
      {{- include "cardquota.namespaceSelector" .root | nindent 6 }}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [{{ .operation }}], resources: [{{ .resources }}], scope: Namespaced}
{{- end }}

{{/*
One of the two processes. All of these take (dict "root" $ "component" "webhook"), where the component is also the key of
its values and the subcommand that is run.
*/}}

{{- define "cardquota.process.arguments" -}}
{{- $root := .root }}
- {{ .component }}
- --config=/etc/cardquota/cardquota.yaml
- --port=9443
- --metrics-port=8080
- --namespace=$(POD_NAMESPACE)
- --cert-secret={{ include "cardquota.certificates" $root }}
- --service={{ include (print "cardquota." .component) $root }}.$(POD_NAMESPACE).svc
- --controller-account=system:serviceaccount:$(POD_NAMESPACE):{{ include "cardquota.controller" $root }}
- --log-level={{ (index $root.Values .component).logLevel }}
{{- if eq .component "controller" }}
{{- include "cardquota.process.names" (list "--dns-name" (include "cardquota.controller" $root) $root) }}
{{- include "cardquota.process.names" (list "--webhook-name" (include "cardquota.webhook" $root) $root) }}
- --authority-secret={{ include "cardquota.authority" $root }}
{{- if ne (($root.Values.certs | default dict).mode | default "self") "self" }}
- --certificates=given
{{- end }}
- --webhook-configuration={{ include "cardquota.mutating" $root }}
- --webhook-configuration={{ include "cardquota.validating" $root }}
- --lease={{ include "cardquota.lease" $root }}
- --identity=$(POD_NAME)
- --advertise-address=https://$(POD_IP):9443
- --hook-timeout={{ $root.Values.controller.bindingHook.timeoutSeconds }}
{{- if $root.Values.features.extender }}
- --extender-port={{ $root.Values.controller.extender.port }}
- --kube-extender-port={{ $root.Values.controller.extender.kubePort }}
{{- end }}
{{- if ($root.Values.controller.answers | default dict).enabled }}
- --answers-port={{ $root.Values.controller.answers.port }}
{{- if $root.Values.controller.answers.page }}
- --answers-page
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Every name of a Service, each with a flag before it. Takes (list flag service root). */}}
{{- define "cardquota.process.names" -}}
{{- $root := last . }}
{{- range $ending := list "" ".$(POD_NAMESPACE)" ".$(POD_NAMESPACE).svc" (print ".$(POD_NAMESPACE).svc." $root.Values.clusterDomain) }}
- {{ first $ }}={{ index $ 1 }}{{ $ending }}
{{- end }}
{{- end }}

{{/* What Pod Security calls restricted, of pods and of containers. */}}
{{- define "cardquota.process.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "cardquota.process.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "cardquota.process.deployment" -}}
{{- $root := .root }}
{{- $values := index .root.Values .component }}
{{- $name := include (print "cardquota." .component) .root }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "cardquota.metadata" . | nindent 2 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "cardquota.selectorLabels" . | nindent 6 }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels:
        {{- $own := dict }}
        {{- if eq .component "controller" }}
        # With hook-path: secret it serves the binding hook at the path in the Secret; while a pod without runs, no API server is told that path.
        {{- $own = dict "cardquota.io/hook-path" "secret" }}
        {{- end }}
        {{- $labels := include "cardquota.firstOf" (list $own $values.podLabels) | fromYaml }}
        {{- include "cardquota.labels" (dict "root" $root "component" .component "labels" $labels) | nindent 8 }}
      annotations:
        {{- $own = dict "checksum/config" (include (print $root.Template.BasePath "/config.yaml") $root | sha256sum) }}
        {{- include "cardquota.firstOf" (list $own $values.podAnnotations $root.Values.commonAnnotations) | nindent 8 }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: true
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      securityContext:
        {{- include "cardquota.process.podSecurity" . | nindent 8 }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: cardquota
        image: {{ include "cardquota.image" $root | quote }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        command: [cardquota]
        args:
        {{- include "cardquota.process.arguments" . | trim | nindent 8 }}
        env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        ports:
        - {name: https, containerPort: 9443}
        - {name: metrics, containerPort: 8080}
        {{- if and (eq .component "controller") $root.Values.features.extender }}
        - {name: extender, containerPort: {{ $root.Values.controller.extender.port }}}
        - {name: kube-extender, containerPort: {{ $root.Values.controller.extender.kubePort }}}
        {{- end }}
        {{- if and (eq .component "controller") ($root.Values.controller.answers | default dict).enabled }}
        - {name: answers, containerPort: {{ $root.Values.controller.answers.port }}}
        {{- end }}
        readinessProbe:
          httpGet: {path: /readyz, port: metrics}
          periodSeconds: 5
          timeoutSeconds: 2
        livenessProbe:
          httpGet: {path: /healthz, port: metrics}
          initialDelaySeconds: 10
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        lifecycle:
          # The Service needs a moment to stop sending requests here.
          preStop: {sleep: {seconds: 5}}
        resources:
          {{- toYaml $values.resources | nindent 10 }}
        securityContext:
          {{- include "cardquota.process.containerSecurity" . | nindent 10 }}
        volumeMounts:
        - {name: config, mountPath: /etc/cardquota, readOnly: true}
      volumes:
      - name: config
        configMap: {name: cardquota}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        matchLabelKeys: [pod-template-hash]
        labelSelector:
          matchLabels:
            {{- include "cardquota.selectorLabels" . | nindent 12 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* The Service that the API server calls. */}}
{{- define "cardquota.process.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include (print "cardquota." .component) .root }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "cardquota.metadata" . | nindent 2 }}
spec:
  selector:
    {{- include "cardquota.selectorLabels" . | nindent 4 }}
  ports:
  - {name: https, port: 443, targetPort: https}
  {{- if and (eq .component "controller") .root.Values.features.extender }}
  # kube-scheduler's. The same number as in the pods: whoever asks at the port above is sent here by it.
  - {name: kube-extender, port: {{ .root.Values.controller.extender.kubePort }}, targetPort: kube-extender}
  {{- end }}
  {{- if and (eq .component "controller") (.root.Values.controller.answers | default dict).enabled }}
  - {name: answers, port: {{ .root.Values.controller.answers.port }}, targetPort: answers}
  {{- end }}
{{- end }}

{{- define "cardquota.process.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include (print "cardquota." .component) .root }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "cardquota.metadata" . | nindent 2 }}
automountServiceAccountToken: false
{{- end }}

{{/* Nothing for a single replica: it could never be moved off its node. */}}
{{- define "cardquota.process.pdb" -}}
{{- $values := index .root.Values .component }}
{{- if and $values.pdb.enabled (gt (int $values.replicas) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include (print "cardquota." .component) .root }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "cardquota.metadata" . | nindent 2 }}
spec:
  minAvailable: {{ $values.pdb.minAvailable }}
  selector:
    matchLabels:
      {{- include "cardquota.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end }}

{{/*
The spec of a hook's pod, whose only container comes last for its arguments to follow. Takes (dict "root" $ "account" "name").
*/}}
{{- define "cardquota.hookPod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
# A pod that failed stays, and with it what it said.
restartPolicy: Never
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- include "cardquota.process.podSecurity" . | nindent 2 }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.controller.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.controller.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.controller.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: cardquota
  image: {{ include "cardquota.image" .root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  command: [cardquota]
  resources:
    requests: {cpu: 100m, memory: 128Mi}
    limits: {memory: 512Mi}
  securityContext:
    {{- include "cardquota.process.containerSecurity" . | nindent 4 }}
{{- end }}

{{- /* The common part of a pod: who it may be, what it may not, and the settings. Takes root, account, restart, worker, cached and container. */ -}}
{{- define "basetensor.labels" -}}
app.kubernetes.io/name: basetensor
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "basetensor.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .restart }}
restartPolicy: {{ . }}
{{- end }}
{{- if .worker }}
terminationGracePeriodSeconds: 50 # BTN_DRAIN, 30 s, and BTN_OVERDUE, 10 s
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {app.kubernetes.io/component: {{ .worker }}}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
- name: basetensor
  image: "{{ .root.Values.image }}:{{ .root.Values.tag | default .root.Chart.AppVersion }}"
  imagePullPolicy: IfNotPresent
  {{- with .command }}
  command: {{ toJson . }}
  {{- end }}
  {{- with .args }}
  args: {{ toJson . }}
  {{- end }}
  envFrom:
  - configMapRef: {name: settings}
  {{- if .cached }}
  - configMapRef: {name: cache}
  {{- end }}
  env:
  {{- range $name, $value := .env }}
  - {name: {{ $name }}, value: {{ quote $value }}}
  {{- end }}
  {{- if .worker }}
  - {name: BTN_HTTP, value: "0.0.0.0:8080"}
  {{- end }}
  - name: GOMEMLIMIT
    valueFrom:
      resourceFieldRef: {resource: requests.memory}
  {{- if .worker }}
  ports:
  - {name: http, containerPort: 8080}
  {{- with .port }}
  - {{ toJson . }}
  {{- end }}
  startupProbe:
    httpGet: {path: /healthz, port: http}
    periodSeconds: 2
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /healthz, port: http}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: http}
    periodSeconds: 5
    timeoutSeconds: 3
  {{- end }}
  resources: {{ toJson .resources }}
  securityContext:
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
{{- end }}

{{- define "basetensor.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .worker }}
  labels:
    {{- include "basetensor.labels" .worker | nindent 4 }}
    basetensor: pod
spec:
  replicas: {{ .replicas }}
  revisionHistoryLimit: 3
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels: {app.kubernetes.io/component: {{ .worker }}}
  template:
    metadata:
      labels:
        {{- include "basetensor.labels" .worker | nindent 8 }}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
        checksum/settings: {{ list .root.Values.settings .root.Values.cache | toJson | sha256sum }} # a changed setting rolls the pods
    spec:
      {{- include "basetensor.pod" . | nindent 6 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .worker }}
  labels: {app.kubernetes.io/name: basetensor}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  selector:
    matchLabels: {app.kubernetes.io/component: {{ .worker }}}
{{- end }}

{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "kata-affinity.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kata-affinity.selector" -}}
app.kubernetes.io/name: kata-affinity
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kata-affinity.labels" -}}
{{ include "kata-affinity.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kata-affinity.image" -}}
{{- $repository := required "image.repository: name the registry that you pushed the image to" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
{{- end }}

{{- /* All groups of nodes, the default one under the name "": {name, profile, settings}. */ -}}
{{- define "kata-affinity.groups" -}}
- {name: "", profile: {{ .Values.profile }}, settings: {{ toJson .Values.settings }}}
{{- range $name, $group := .Values.groups }}
- {name: {{ $name }}, profile: {{ $group.profile | default $.Values.profile }}, settings: {{ toJson ($group.settings | default dict) }}}
{{- end }}
{{- end }}

{{- /* Those that install. */ -}}
{{- define "kata-affinity.daemonSets" -}}
{{- $name := include "kata-affinity.name" . }}
{{- $names := list $name }}
{{- range $group, $_ := .Values.groups }}{{ $names = append $names (printf "%s-%s" $name $group) }}{{ end }}
{{- toJson $names }}
{{- end }}

{{- /* Keys of a table; numbers arrive as floats, and TOML keeps the two apart. */ -}}
{{- define "kata-affinity.keys" -}}
{{- range $key, $value := omit . "handler" "classes" }}
{{ $key }} = {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ toJson $value }}{{ end }}
{{- end }}
{{- end }}

{{- /* Arguments: root and settings. Nothing where nothing is set. */ -}}
{{- define "kata-affinity.toml" -}}
{{- $node := .settings }}
{{- with .root.Values.metrics.listen }}{{ $node = merge (dict "metrics_listen" .) $node }}{{ end }}
{{- /* 0666: the directory is below one of mode 0700, so only its mount into the readers leads to it. */ -}}
{{- if .root.Values.reader.enabled }}
{{- $node = merge (dict "read_socket" "/run/kata-affinity/read/api.sock" "read_socket_mode" "0666") $node }}
{{- end }}
{{- /* The reporter's user. */ -}}
{{- if and .root.Values.reporter.enabled .root.Values.reporter.classes }}
{{- $node = merge (dict "managed.annotations_uid" 65533) $node }}
{{- end }}
{{- if $node -}}
[affinity]
{{- include "kata-affinity.keys" $node }}
{{- range $handler, $keys := $node.handler }}

[affinity.handler.{{ $handler }}]
{{- include "kata-affinity.keys" $keys }}
{{- end }}
{{- range $class, $keys := $node.classes }}

[affinity.classes.{{ $class }}]
{{- include "kata-affinity.keys" $keys }}
{{- end }}
{{- end }}
{{- end }}

{{- /* NFD's feature file on the nodes, where NFD marks them; else nothing. Values of an earlier release have no nfd. */ -}}
{{- define "kata-affinity.featureFile" -}}
{{- if and .Values.reporter.enabled (.Values.reporter.nfd).enabled (ne .Values.reporter.markNode "none") -}}
/etc/kubernetes/node-feature-discovery/features.d/kata-affinity-isolation
{{- end }}
{{- end }}

{{- define "kata-affinity.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* What speaks to the API server: an account that may see (and, to remove, change) DaemonSets of the chart. Arguments:
root, name, daemonSets, verbs, hook (annotations). */ -}}
{{- define "kata-affinity.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kata-affinity.labels" .root | nindent 4 }}
  annotations:
    {{- toYaml .hook | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kata-affinity.labels" .root | nindent 4 }}
  annotations:
    {{- toYaml .hook | nindent 4 }}
rules:
  # get: how many nodes are done. patch (removal only): from `run install` to `run remove`. Of these DaemonSets only.
  - apiGroups: [apps]
    resources: [daemonsets]
    resourceNames: {{ .daemonSets }}
    verbs: {{ toJson .verbs }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kata-affinity.labels" .root | nindent 4 }}
  annotations:
    {{- toYaml .hook | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .name }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- /* The pod that uses it. Arguments: root, name, verb, daemonSets, seconds, and
to remove: reporter, the DaemonSet that has it. */ -}}
{{- define "kata-affinity.clusterPod" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
serviceAccountName: {{ .name }}
restartPolicy: Never
enableServiceLinks: false
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: kubernetes.io/os, operator: In, values: [linux]}
            - {key: kubernetes.io/arch, operator: In, values: {{ .root.Values.architectures | toJson }}}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: {{ .verb }}
    image: {{ include "kata-affinity.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [kata-affinity-cluster, {{ .verb }}]
    args: {{ .daemonSets }}
    env:
      - name: KATA_AFFINITY_TIMEOUT
        value: {{ .seconds | quote }}
      {{- with .reporter }}
      - name: KATA_AFFINITY_REPORTER
        value: {{ . }}
      {{- end }}
    terminationMessagePolicy: FallbackToLogsOnError
    resources:
      requests:
        cpu: 10m
        memory: 32Mi
      limits:
        memory: 64Mi
    securityContext:
      {{- include "kata-affinity.restricted" .root | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
volumes:
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

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

{{- define "kata-affinity.daemonSets" -}}
{{- $name := include "kata-affinity.name" . }}
{{- $names := list $name }}
{{- range $group, $_ := .Values.groups }}{{ $names = append $names (printf "%s-%s" $name $group) }}{{ end }}
{{- toJson $names }}
{{- end }}

{{- /* Keys of a table; numbers arrive as floats, and TOML keeps the two apart. */ -}}
{{- define "kata-affinity.keys" -}}
{{- range $key, $value := omit . "handler" }}
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
{{- if $node -}}
[affinity]
{{- include "kata-affinity.keys" $node }}
{{- range $handler, $keys := $node.handler }}

[affinity.handler.{{ $handler }}]
{{- include "kata-affinity.keys" $keys }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kata-affinity.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

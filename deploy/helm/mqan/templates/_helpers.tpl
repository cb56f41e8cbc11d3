{{- define "mqan.selector" -}}
app.kubernetes.io/name: mqan
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mqan.labels" -}}
{{ include "mqan.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

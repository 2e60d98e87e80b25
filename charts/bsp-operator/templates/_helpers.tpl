{{- define "bsp.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "bsp.selector" -}}
app.kubernetes.io/name: bsp-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* A map as LABEL=VALUE,… */}}
{{- define "bsp.pairs" -}}
{{- $pairs := list }}
{{- range $name, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $name $value) }}{{ end }}
{{- join "," $pairs }}
{{- end }}

{{- define "bsp.labels" -}}
{{ include "bsp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "bsp.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "bsp.name" .) }}
{{- else }}{{ required "serviceAccount.name: required, because serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "bsp.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* How the runtime comes into the pods of jobs. */}}
{{- define "bsp.delivery" -}}
{{- if ne .Values.runtime.delivery "Auto" }}{{ .Values.runtime.delivery }}
{{- else if semverCompare ">=1.35.0-0" .Capabilities.KubeVersion.Version }}ImageVolume
{{- else }}Copy
{{- end }}
{{- end }}

{{/* "true" if evictions of ranks' pods are answered. */}}
{{- define "bsp.webhook" -}}
{{- $enabled := toString (.Values.webhook).enabled }}
{{- if or (eq $enabled "true") (and (eq $enabled "Auto") (not .Values.watchNamespace) (not .Values.jobs.namespaces)) }}true
{{- end }}
{{- end }}

{{/* The restricted Pod Security Standard. */}}
{{- define "bsp.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "bsp.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* "true" if this operator announces its moves to others, which needs a namespace of its own. */}}
{{- define "bsp.exchanges" -}}
{{- if ne .Values.exchange.protocol "Reservations" }}
{{- if not (hasKey .Values.exchange.members .Values.watchNamespace) }}
{{- fail (printf "exchange.protocol %s is between operators of one namespace each: set watchNamespace, and name it in exchange.members" .Values.exchange.protocol) }}
{{- end }}true
{{- end }}
{{- end }}
{{- define "bsp.exchangeMembers" -}}
{{- $members := list }}
{{- range $name, $address := .Values.exchange.members }}{{ $members = append $members (printf "%s=%s" $name $address) }}{{ end }}
{{- join "," $members }}
{{- end }}

{{/* The namespaces whose jobs this operator may run, as a JSON list; [] for all. */}}
{{- define "bsp.jobNamespaces" -}}
{{- eq .Values.watchNamespace "" | ternary .Values.jobs.namespaces (list .Values.watchNamespace) | default list | toJson }}
{{- end }}

{{/* Fails if another release's operator manages a namespace of this one: they would take each other's jobs. Seen where Helm asks the cluster. */}}
{{- define "bsp.alone" -}}
{{- $mine := include "bsp.jobNamespaces" . | fromJsonArray }}
{{- range (lookup "apps/v1" "Deployment" "" "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- $here := and (eq .metadata.namespace $.Release.Namespace) (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) }}
{{- if and (eq (get $labels "app.kubernetes.io/name") "bsp-operator") (not $here) }}
{{- $named := get (.metadata.annotations | default dict) "migbsp.io/namespaces" }}
{{- $theirs := list }}
{{- if $named }}{{ $theirs = fromJsonArray $named }}
{{- else }}
{{- /* of chart 0.1, which doesn't say it */}}
{{- range (first .spec.template.spec.containers).args }}
{{- if and (hasPrefix "--namespace=" .) (ne . "--namespace=all") }}{{ $theirs = list (trimPrefix "--namespace=" .) }}{{ end }}
{{- end }}
{{- end }}
{{- $common := "" }}
{{- if and (not $mine) (not $theirs) }}{{ $common = "every namespace" }}
{{- else if not $theirs }}{{ $common = printf "namespace %s" (first $mine) }}
{{- else if not $mine }}{{ $common = printf "namespace %s" (first $theirs) }}
{{- else }}{{ range $mine }}{{ if has . $theirs }}{{ $common = printf "namespace %s" . }}{{ end }}{{ end }}
{{- end }}
{{- if $common }}
{{- fail (printf "the operator of release %s in namespace %s manages %s, too, and two would take each other's jobs: set watchNamespace or jobs.namespaces of both, so that each namespace has one operator" (get $labels "app.kubernetes.io/instance") .metadata.namespace $common) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

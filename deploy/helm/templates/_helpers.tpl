{{- define "custody.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "custody.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "custody.labels" -}}
{{ include "custody.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "custody.image" -}}
{{- $image := .Values.image -}}
{{- required "image.repository: name the image that the Dockerfile builds" $image.repository -}}
:{{ $image.tag | default .Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* The settings of a component: secrets from the existing Secret, each only where it is needed, and the others as given. */}}
{{- define "custody.env" -}}
{{- $secret := required "secretName: name an existing Secret with DATABASE_URL, MASTER_KEY and PLATFORM_TOKEN" .root.Values.secretName -}}
{{- $required := list "DATABASE_URL" -}}
{{- $optional := list -}}
{{- if ne .component "migrate" -}}
{{- $required = append $required "MASTER_KEY" -}}
{{- $optional = list "MASTER_KEY_PREVIOUS" "TEMPORAL_API_KEY" "PORTAL_OIDC_CLIENT_SECRET" -}}
{{- end -}}
{{- if eq .component "api" -}}
{{- $required = append $required "PLATFORM_TOKEN" -}}
{{- $optional = concat $optional (list "DATABASE_READ_URL" "SMTP_URL") -}}
{{- end -}}
{{- if eq .component "worker" -}}
{{- $optional = concat $optional (list "SMTP_URL" "WEBHOOK_PROXY_URL") -}}
{{- end -}}
{{- range $required }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }} } }
{{- end }}
{{- range $optional }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }}, optional: true } }
{{- end }}
{{- if ne .component "migrate" }}
{{- $_ := required "settings.TEMPORAL_ADDRESS: name the Temporal cluster as host:port" .root.Values.settings.TEMPORAL_ADDRESS }}
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "custody.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - name: data
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- with .Values.filesSecretName }}
  - name: files
    secret: { secretName: {{ . }}, defaultMode: 0440 }
{{- end }}
{{- end -}}

{{- define "custody.containerSecurity" -}}
image: {{ include "custody.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: data, mountPath: /data }
  - { name: tmp, mountPath: /tmp }
{{- if .Values.filesSecretName }}
  - { name: files, mountPath: /files, readOnly: true }
{{- end }}
{{- end -}}

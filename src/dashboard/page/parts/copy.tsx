/** Taking something along: an id, a link, the question for a terminal, the answer as JSON. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { urlOf } from '../fetch-route.js'

const SHOWN_MS = 1_500

/** The same request for a terminal. */
const curlOf = (url: string) => `curl -H "X-Admin-Key: $KEY" '${url.replaceAll("'", '%27')}'`

/** The command that writes the deployment to a file, for readers without access to it. */
const captureCommand = () => `SERVICE_ADMIN_KEY="$KEY" npx relayscope capture '${urlOf('/')}' -o incident.json --redact`

/** Without HTTPS a browser keeps its clipboard to itself; the old way works there too. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = document.createElement('textarea')
    field.value = text
    document.body.append(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    return isCopied
  }
}

interface CopyProps {
  /** What is copied. */
  name: string
  text: () => string
}

export function Copy({ name, text }: CopyProps): JSX.Element {
  const [result, setResult] = useState('')
  const copy = async () => {
    setResult((await copyText(text())) ? 'copied' : 'the browser refused')
    setTimeout(() => setResult(''), SHOWN_MS)
  }
  return (
    <button type="button" class="copy" onClick={copy}>
      {result || `copy ${name}`}
    </button>
  )
}

/** A list as a file of lines, with its fields in the order of the first record; what is deeper is JSON. */
function csvOf(value: unknown): string {
  const { items = [] } = (value ?? {}) as { items?: readonly Record<string, unknown>[] }
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))]
  const cell = (one: unknown) => {
    const text = one == null ? '' : typeof one === 'object' ? JSON.stringify(one) : String(one)
    // A program of tables would run what begins so.
    return `"${(/^[=+@\t-]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
  }
  return [names.join(','), ...items.map((item) => names.map((name) => cell(item[name])).join(','))].join('\n')
}

interface ToolsProps {
  url: string
  value: () => unknown
  /** Whether it is a list, which has lines. */
  isList: boolean
}

/** What can be copied of a page, as one menu. */
export const Tools = ({ url, value, isList }: ToolsProps): JSX.Element => (
  <details class="tools">
    <summary>Copy</summary>
    <div>
      <Copy name="link" text={() => location.href} />
      <Copy name="curl" text={() => curlOf(url)} />
      <Copy name="capture command" text={captureCommand} />
      <Copy name="JSON" text={() => JSON.stringify(value(), null, 2)} />
      {isList && <Copy name="CSV" text={() => csvOf(value())} />}
    </div>
  </details>
)

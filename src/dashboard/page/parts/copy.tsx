/** Taking something along: an id, a link, the question for a terminal, the answer as JSON. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'

const SHOWN_MS = 1_500

/** The same request for a terminal. */
const curlOf = (url: string) => `curl -H "X-Admin-Key: $KEY" '${url.replaceAll("'", '%27')}'`

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

/** What can be taken along of a page. */
export const Tools = ({ url, value }: { url: string; value: () => unknown }): JSX.Element => (
  <p class="tools">
    <Copy name="link" text={() => location.href} />
    <Copy name="curl" text={() => curlOf(url)} />
    <Copy name="JSON" text={() => JSON.stringify(value(), null, 2)} />
  </p>
)

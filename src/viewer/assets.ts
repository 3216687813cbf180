/** The page's script and style sheet, which the build puts in as texts: no file is read, in whatever runtime. */
import { digest64 } from '../contract/digest.js'

declare const RELAYSCOPE_VIEWER_SCRIPT: string
declare const RELAYSCOPE_VIEWER_STYLE: string

/** One asset under a name that says what is in it, so that it may be kept for ever. */
export interface Asset {
  readonly name: string
  readonly type: string
  readonly text: string
}

function asset(ending: string, type: string, text: string): Asset {
  return { name: `viewer-${digest64(text)}.${ending}`, type: `${type}; charset=utf-8`, text }
}

export const SCRIPT = asset('js', 'text/javascript', RELAYSCOPE_VIEWER_SCRIPT)
export const STYLE = asset('css', 'text/css', RELAYSCOPE_VIEWER_STYLE)

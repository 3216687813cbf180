/** The page without its data: where the router is, seen from here, and the two files that make the rest. */

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string)

interface Shell {
  title: string
  /** Relative to the page, or of another origin. */
  api: string
  script: string
  style: string
}

/** Every URL in it is relative: a proxy may have put something in front of the path. */
export const shellOf = ({ title, api, script, style }: Shell): string => `<!doctype html>
<html lang="en" data-api="${escaped(api)}">
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<noscript>This page needs JavaScript. What it shows is also at the routes of the diagnostics router.</noscript>
</body>
</html>
`

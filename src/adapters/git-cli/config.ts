import { smallFile } from './small-file.ts'

const MOST_BYTES = 8 * 1024 * 1024

export type Setting = [key: string, value: string]

const YES_OR_NO = /^(?:true|false|yes|no|on|off|1|0|)$/i
const WORD = /^[A-Za-z0-9.-]{0,100}$/
/** Not of a helper (`ext::…`), nor an option, nor a host that ssh would take for one. */
const ADDRESS = /^(?!-)(?!\w+::)(?!.*(?:\/\/|@)-)[^\0\n\r]{1,2000}$/
const TEXT = /^[^\0\n\r]{0,2000}$/

/**
 * What the repository's own configuration may say: how its files are laid out, where its remotes are. Whoever works in the repository
 * can write it, so nothing that names a program, or another file of settings or attributes, is among these.
 */
const COUNTS: [key: RegExp, value: RegExp][] = [
  [/^core\.(?:filemode|symlinks|ignorecase|precomposeunicode|trustctime|sparsecheckout|sparsecheckoutcone)$/, YES_OR_NO],
  [/^core\.autocrlf$/, /^(?:true|false|yes|no|on|off|1|0|input|)$/i],
  [/^core\.eol$/, /^(?:lf|crlf|native)$/i],
  [/^core\.checkstat$/, /^(?:default|minimal)$/i],
  [/^core\.logallrefupdates$/, /^(?:true|false|always)$/i],
  [/^core\.sharedrepository$/, /^(?:umask|group|all|world|everybody|true|false|[0-7]{1,4})$/i],
  [/^core\.excludesfile$/, TEXT],
  [/^core\.repositoryformatversion$/, /^[01]$/],
  // With worktreeconfig git would read another file of the repository's.
  [/^extensions\.(?!worktreeconfig$)[a-z]+$/, WORD],
  [/^remote\..*\.(?:url|lfsurl)$/, ADDRESS],
  [/^remote\..*\.(?:fetch|partialclonefilter)$/, TEXT],
  [/^remote\..*\.promisor$/, YES_OR_NO],
  [/^branch\..*\.(?:remote|merge)$/, TEXT],
  [/^lfs\.url$/, ADDRESS],
]

export function counting(settings: Setting[]): Setting[] {
  return settings.filter(([key, value]) => COUNTS.some(([keys, values]) => keys.test(key) && values.test(value)))
}

export function lastOf(settings: Setting[], key: string): string | undefined {
  return settings.findLast(([name]) => name === key)?.[1]
}

export function isOn(settings: Setting[], key: string): boolean {
  return /^(?:true|yes|on|1)$/i.test(lastOf(settings, key) ?? '')
}

/** Filters that a plain git would run here, and we do not; `any` where it is said in files that are not read. */
export function filtersIn(settings: Setting[]): Set<string> | 'any' {
  if (settings.some(([key]) => /^include(?:if)?\./.test(key))) return 'any'
  return new Set(settings.flatMap(([key]) => /^filter\.(.*)\.(?:smudge|process)$/.exec(key)?.[1] ?? []))
}

/** As a file of configuration. */
export function written(settings: Setting[]): string {
  const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`
  return settings
    .map(([key, value]) => {
      const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')]
      const section = first === last ? key.slice(0, first) : `${key.slice(0, first)} ${quoted(key.slice(first + 1, last))}`
      return `[${section}]\n\t${key.slice(last + 1)} = ${quoted(value)}\n`
    })
    .join('')
}

/** `key LF value NUL …`; a key without a value has no line feed. */
export function parsed(listed: string): Setting[] {
  return listed
    .split('\0')
    .filter(Boolean)
    .map((entry): Setting => {
      const end = entry.indexOf('\n')
      return end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)]
    })
}

/** What files of configuration say, without any that they include. */
export class Configurations {
  readonly #known = new Map<string, { text: string; settings: Setting[] }>()
  readonly #list: (text: string, file: string) => Promise<Setting[]>

  /** Throws when it cannot be read: a look that fails has not found nothing. */
  constructor(list: (text: string, file: string) => Promise<Setting[]>) {
    this.#list = list
  }

  /** The file is read every time, as its stamp does not tell of a second change in the same moment; git is only asked about a new text. */
  async in(file: string): Promise<Setting[]> {
    const text = (await smallFile(file, MOST_BYTES)) ?? ''
    const known = this.#known.get(file)
    if (known?.text === text) return known.settings
    const settings = text ? await this.#list(text, file) : []
    this.#known.set(file, { text, settings })
    return settings
  }
}

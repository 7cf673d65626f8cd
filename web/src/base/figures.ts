// SPDX-License-Identifier: Apache-2.0
//
// Figures as files for other programs: CSV and JSON.

export interface Figures {
  heads: readonly string[];
  rows: readonly (readonly (string | number | null)[])[];
}

/** A text that begins so would be run as a formula by a spreadsheet. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const asCsv = ({ heads, rows }: Figures): string => [heads, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");

export const asJson = ({ heads, rows }: Figures): string =>
  `${JSON.stringify(rows.map((row) => Object.fromEntries(heads.map((head, i) => [head, row[i] ?? null]))), null, 1)}\n`;

/** A name that every file system takes. */
export const fileName = (name: string, form: string): string => `${`ttmem ${name}`.replace(/[^\w.]+/g, "-").slice(0, 80).replace(/-$/, "")}.${form}`;

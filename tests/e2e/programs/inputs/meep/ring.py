import meep as mp
n, w, r, pad, dpml = 3.4, 1, 1, 4, 2
sxy = 2 * (r + w + pad + dpml)
sim = mp.Simulation(cell_size=mp.Vector3(sxy, sxy), resolution=20, boundary_layers=[mp.PML(dpml)],
                    geometry=[mp.Cylinder(radius=r + w, height=mp.inf, material=mp.Medium(index=n)), mp.Cylinder(radius=r, height=mp.inf)],
                    sources=[mp.Source(mp.GaussianSource(0.15, fwidth=0.1), mp.Ez, mp.Vector3(r + 0.1))])
h = mp.Harminv(mp.Ez, mp.Vector3(r + 0.1), 0.15, 0.1)
def show(sim):
    e = sim.get_field_point(mp.Ez, mp.Vector3(r + 0.1)), sim.electric_energy_in_box(mp.Volume(center=mp.Vector3(), size=mp.Vector3(4, 4)))
    if mp.am_master(): print("at", sim.meep_time(), repr(e), flush=True)
sim.run(mp.at_beginning(mp.output_epsilon), mp.at_every(10, show), mp.at_every(50, mp.output_efield_z), mp.after_sources(h), until_after_sources=250)
if mp.am_master():
    for m in h.modes: print("mode", m.freq, m.Q)
